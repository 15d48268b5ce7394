(* Blocks that are identified by their size: which are kept to the end, which are not, and when
   they were let go. lives KIND DOMAINS ACTION

   Blocks are only in what the domains share, so that any of them may be the one that
   promotes them. At the end a line for each size says how many there were and whether
   they are kept; a block of `released` words marks when those of a size were let go. *)
let members = int_of_string Sys.argv.(2)
let rounds = 24
let per_round = 40
let young member round = 57 + (member * 24) + round (* at most 248: these are allocated in the young heap *)
let major member round = 2_000 + (member * 100) + round
let released member round = 5_000 + (member * 100) + round
let kept round = round mod 2 = 0

(* Only the blocks of this function are identified by their size. *)
let[@inline never] named size content = Array.make size content
let mark size = ignore (Sys.opaque_identity (named size 0))

(* What happens in each domain now and then. *)
let action =
  match Sys.argv.(3) with
  | "nothing" -> fun _ _ -> ()
  | "minor" -> fun _ _ -> Gc.minor ()
  | "set" ->
      fun member round ->
        if round mod 4 = member mod 4 then
          Gc.set { (Gc.get ()) with minor_heap_size = 4_096 lsl ((round + member) mod 5) }
  | "compact" -> fun member round -> if round mod 8 = member then Gc.compact ()
  | "major" -> fun member round -> if round mod 4 = member mod 4 then Gc.full_major ()
  | other -> failwith other

(* Work for the collector, without identified blocks. *)
let clutter = Array.make (8 * 8) []

let disturb member i = clutter.((member * 8) + (i mod 8)) <- List.init (20 + (i mod 50)) (fun j -> (i, j))

(* Each domain puts its blocks between those of the others. *)
let table = Array.make (rounds * per_round * members) [||]
let large = Array.make (rounds * members) [||]
let slot member round i = (((round * per_round) + i) * members) + member

let let_go member round =
  mark (released member round);
  for i = 0 to per_round - 1 do
    table.(slot member round i) <- [||]
  done;
  large.((round * members) + member) <- [||]

let in_the_table member =
  for round = 0 to rounds - 1 do
    for i = 0 to per_round - 1 do
      table.(slot member round i) <- named (young member round) i;
      disturb member i;
      if i = per_round / 2 then action member round
    done;
    large.((round * members) + member) <- named (major member round) round;
    if round >= 3 && not (kept (round - 3)) then let_go member (round - 3)
  done

(* The same, each round in a domain that ends with it. *)
let in_short_lives member =
  for round = 0 to rounds - 1 do
    let life () =
      for i = 0 to per_round - 1 do
        table.(slot member round i) <- named (young member round) i;
        disturb member i
      done;
      large.((round * members) + member) <- named (major member round) round;
      action member round
    in
    Domain.join (Domain.spawn life);
    if round >= 3 && not (kept (round - 3)) then let_go member (round - 3)
  done

(* A chain to which all add: most of it is reached through the blocks of others. *)
type chain = End | Link of { name : int * int * int; block : int array; before : chain }

let chain = Atomic.make End

let rec add name block =
  let before = Atomic.get chain in
  if not (Atomic.compare_and_set chain before (Link { name; block; before })) then begin
    Domain.cpu_relax ();
    add name block
  end

let in_a_chain member =
  for round = 0 to rounds - 1 do
    for i = 0 to per_round - 1 do
      add (member, round, i) (named (young member round) i);
      disturb member i;
      if i = per_round / 2 then action member round
    done;
    large.((round * members) + member) <- named (major member round) round
  done

let rec unchain = function
  | End -> ()
  | Link { name = member, round, i; block; before } ->
      table.(slot member round i) <- block;
      unchain before

let () =
  let work =
    match Sys.argv.(1) with
    | "table" -> in_the_table
    | "short" -> in_short_lives
    | "chain" -> in_a_chain
    | other -> failwith other
  in
  ignore (Team.run members work);
  unchain (Atomic.exchange chain End);
  for member = 0 to members - 1 do
    for round = 0 to rounds - 1 do
      if not (kept round) && Array.length large.((round * members) + member) > 0 then let_go member round;
      let state = if kept round then "kept" else "dropped" in
      Printf.printf "%s %d %d\n" state (young member round) per_round;
      Printf.printf "%s %d 1\n" state (major member round);
      if kept round then
        for i = 0 to per_round - 1 do
          let block = table.(slot member round i) in
          assert (Array.length block = young member round && Array.for_all (( = ) i) block)
        done
    done
  done;
  Array.fill clutter 0 64 [];
  Gc.full_major ();
  Gc.full_major ();
  mark 999;
  Check.finish ();
  ignore (Sys.opaque_identity (table, large))
