(* Addresses of blocks: memory that is reused belonged to a block that is dead.
   A block's length identifies the domain that allocated it. No compaction. *)
external place : Obj.t -> int = "reuse_place" [@@noalloc]

let rounds = 6_000
let shared = Array.init 64 (fun _ -> [||])
let[@inline never] made length = Array.make length 0

let work member =
  let young = Array.make rounds 0 and major = Array.make (rounds / 10) 0 in
  for i = 0 to rounds - 1 do
    let block = made (20 + member) in
    young.(i) <- place (Obj.repr block);
    if i mod 3 = 0 then shared.((i + (member * 17)) land 63) <- block;
    if i mod 10 = 0 then begin
      let block = made (300 + member) in
      major.(i / 10) <- place (Obj.repr block);
      if i mod 40 = 0 then shared.((i + (member * 29)) land 63) <- block
    end;
    if i mod 900 = 899 then Gc.full_major ()
  done;
  [ 20 + member, young; 300 + member, major ]

let () =
  let tell (length, places) =
    Printf.printf "made %d" length;
    Array.iter (Printf.printf " %d") places;
    print_newline ()
  in
  List.iter (List.iter tell) (Team.run (int_of_string Sys.argv.(1)) work)
