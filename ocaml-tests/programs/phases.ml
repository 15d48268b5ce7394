(* Busy phases, in which little is done but allocating, and quiet ones, in which the program mostly waits. What is
   allocated is the same in each run. At the end it prints the words that the collector has counted, and the processor
   time of the busy phases and of all. *)

type tree = Leaf | Node of tree * int * tree

let rec build depth = if depth = 0 then Leaf else Node (build (depth - 1), depth, build (depth - 1))
let rec sum = function Leaf -> 0 | Node (left, value, right) -> sum left + value + sum right
let table = Array.make 5000 [||]

let[@inline never] trees n = ignore (Sys.opaque_identity (sum (build (10 + n mod 3))))
let[@inline never] strings n = ignore (Sys.opaque_identity (String.concat "," (List.init 200 string_of_int)))
let[@inline never] large n = table.(n mod 5000) <- Array.make (300 + n mod 100) n

let work units =
  for n = 1 to units do
    trees n;
    strings n;
    large n
  done

let () =
  let argument n default = if Array.length Sys.argv > n then float_of_string Sys.argv.(n) else default in
  let rounds = int_of_float (argument 1 3.) and units = int_of_float (argument 2 2000.) in
  let quiet = argument 3 0.5 in
  print_endline "ready";
  let busy = ref 0. in
  for _ = 1 to rounds do
    let begun = Sys.time () in
    work units;
    busy := !busy +. Sys.time () -. begun;
    let until = Unix.gettimeofday () +. quiet in
    (* As often in each run. *)
    for _ = 1 to int_of_float (quiet /. 0.01) do
      work 1;
      let left = until -. Unix.gettimeofday () in
      if left > 0. then ignore (Unix.select [] [] [] (min left 0.01))
    done
  done;
  let stat = Gc.quick_stat () in
  Printf.printf "%.0f %.3f %.3f\n" (stat.minor_words +. stat.major_words -. stat.promoted_words) !busy (Sys.time ())
