(* JSON: prints a document, parses it, changes it and prints it again. *)
type json =
  | Null
  | Bool of bool
  | Number of float
  | String of string
  | Array of json list
  | Object of (string * json) list

(* --- Printing --- *)

let print_string_in buffer text =
  Buffer.add_char buffer '"';
  String.iter
    (function
      | '"' -> Buffer.add_string buffer "\\\""
      | '\\' -> Buffer.add_string buffer "\\\\"
      | '\n' -> Buffer.add_string buffer "\\n"
      | c -> Buffer.add_char buffer c)
    text;
  Buffer.add_char buffer '"'

let rec print buffer = function
  | Null -> Buffer.add_string buffer "null"
  | Bool b -> Buffer.add_string buffer (string_of_bool b)
  | Number x -> Buffer.add_string buffer (Printf.sprintf "%.15g" x)
  | String text -> print_string_in buffer text
  | Array items -> print_all buffer '[' ']' print items
  | Object fields ->
    let field buffer (name, value) =
      print_string_in buffer name;
      Buffer.add_char buffer ':';
      print buffer value
    in
    print_all buffer '{' '}' field fields

and print_all : 'a. Buffer.t -> char -> char -> (Buffer.t -> 'a -> unit) -> 'a list -> unit =
 fun buffer opening closing print_one items ->
  Buffer.add_char buffer opening;
  List.iteri
    (fun index item ->
      if index > 0 then Buffer.add_char buffer ',';
      print_one buffer item)
    items;
  Buffer.add_char buffer closing

let to_string json =
  let buffer = Buffer.create 256 in
  print buffer json;
  Buffer.contents buffer

(* --- Parsing --- *)

exception Wrong of int

type input = { text : string; mutable at : int }

let peek input = if input.at < String.length input.text then input.text.[input.at] else '\000'
let skip input = input.at <- input.at + 1

let rec blanks input =
  match peek input with
  | ' ' | '\t' | '\n' | '\r' ->
    skip input;
    blanks input
  | _ -> ()

let expect input c = if peek input = c then skip input else raise (Wrong input.at)

let word input word value =
  String.iter (expect input) word;
  value

let string input =
  expect input '"';
  let buffer = Buffer.create 16 in
  let rec go () =
    match peek input with
    | '"' -> skip input
    | '\\' ->
      skip input;
      Buffer.add_char buffer (match peek input with 'n' -> '\n' | c -> c);
      skip input;
      go ()
    | c ->
      skip input;
      Buffer.add_char buffer c;
      go ()
  in
  go ();
  Buffer.contents buffer

let number input =
  let start = input.at in
  let rec go () =
    match peek input with
    | '0' .. '9' | '-' | '+' | '.' | 'e' | 'E' ->
      skip input;
      go ()
    | _ -> ()
  in
  go ();
  float_of_string (String.sub input.text start (input.at - start))

let rec value input =
  blanks input;
  match peek input with
  | 'n' -> word input "null" Null
  | 't' -> word input "true" (Bool true)
  | 'f' -> word input "false" (Bool false)
  | '"' -> String (string input)
  | '[' -> Array (sequence input '[' ']' value)
  | '{' -> Object (sequence input '{' '}' field)
  | _ -> Number (number input)

and field input =
  blanks input;
  let name = string input in
  blanks input;
  expect input ':';
  (name, value input)

and sequence : 'a. input -> char -> char -> (input -> 'a) -> 'a list =
 fun input opening closing one ->
  expect input opening;
  blanks input;
  if peek input = closing then (
    skip input;
    [])
  else
    let rec go items =
      let items = one input :: items in
      blanks input;
      if peek input = ',' then (
        skip input;
        go items)
      else (
        expect input closing;
        List.rev items)
    in
    go []

let of_string text = value { text; at = 0 }

(* --- A document --- *)

let rec make depth seed =
  match if depth = 0 then seed mod 4 else 4 + (seed mod 2) with
  | 0 -> Null
  | 1 -> Bool (seed mod 3 = 0)
  | 2 -> Number (float_of_int seed /. 8.)
  | 3 -> String (Printf.sprintf "text \"%d\"\n" seed)
  | 4 -> Array (List.init 6 (fun i -> make (depth - 1) (seed + i)))
  | _ -> Object (List.init 5 (fun i -> (Printf.sprintf "field%d" i, make (depth - 1) ((seed * 3) + i))))

let rec change = function
  | Number x -> Number (x +. 1.)
  | Array items -> Array (List.map change items)
  | Object fields -> Object (List.map (fun (name, value) -> (name, change value)) fields)
  | other -> other

let () =
  let rounds = int_of_string Sys.argv.(1) in
  let document = ref (make 6 7) in
  for _ = 1 to rounds do
    document := change (of_string (to_string !document))
  done;
  Printf.printf "checksum %d\n" (Hashtbl.hash (to_string !document))
