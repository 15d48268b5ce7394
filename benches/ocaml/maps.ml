(* Churn of a balanced tree: the standard library's maps, by strings and by integers. *)
module Strings = Map.Make (String)
module Integers = Map.Make (Int)

let () =
  let rounds = int_of_string Sys.argv.(1) in
  let seed = ref 1 in
  let next () =
    seed := ((!seed * 1_103_515_245) + 12_345) land 0x3fff_ffff;
    !seed lsr 8
  in
  let strings = ref Strings.empty and integers = ref Integers.empty in
  for round = 1 to rounds do
    let key = next () land 0xfff in
    integers := Integers.add key round !integers;
    integers := Integers.remove (next () land 0xfff) !integers;
    let name = "key" ^ string_of_int (next () land 0x3ff) in
    strings := Strings.update name (function None -> Some 1 | Some n -> Some (n + 1)) !strings;
    if round land 0xffff = 0 then strings := Strings.filter (fun _ n -> n land 1 = 0) !strings
  done;
  let sum = Integers.fold (fun key value sum -> sum + (key lxor value)) !integers 0 in
  Printf.printf "checksum %d\n" (Strings.fold (fun _ n sum -> sum + n) !strings sum)
