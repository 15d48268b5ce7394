(* A program to trace: it reads files, indexes the words of each, and answers with the last
   twenty indexes. It also keeps every line in a table that it never empties.

     ocamlfind ocamlopt -g -package str -linkpkg words.ml -o words *)

module Index = Map.Make (String)

let files = 120
let lines_per_file = 500
let vocabulary = [| "heap"; "block"; "young"; "major"; "sample"; "frame"; "trace"; "word" |]
let spaces = Str.regexp " +"
let lines : (int, string) Hashtbl.t = Hashtbl.create 16

(* A line of eight words, which stands for input. *)
let read_line number =
  let word i = vocabulary.((number * 7 + i * i) mod 8) ^ string_of_int (number mod (i + 300)) in
  String.concat " " (List.init 8 word)

let add_word number index word =
  Index.update word (fun places -> Some (number :: Option.value places ~default:[])) index

let add_line index number =
  let line = read_line number in
  Hashtbl.replace lines number line;
  List.fold_left (add_word number) index (Str.split spaces line)

let index_file file =
  List.fold_left add_line Index.empty (List.init lines_per_file (fun i -> (file * lines_per_file) + i))

let () =
  let recent = Array.make 20 Index.empty in
  for file = 0 to files - 1 do
    recent.(file mod 20) <- index_file file
  done;
  Printf.printf "%d files, %d lines\n" files (Hashtbl.length lines)
