(* Deep fibers that take turns: few, and more than the walker remembers. Some call deeper, return and change the
   frames outside of them before they yield again. *)
open Effect
open Effect.Deep

type _ Effect.t += Yield : unit Effect.t

let allocate n = List.length (Sys.opaque_identity [ n; n ])

let rec work rounds total =
  if rounds = 0 then total
  else begin
    let more = allocate rounds in
    perform Yield;
    work (rounds - 1) (total + more)
  end

let rec even depth rounds =
  if depth = 0 then work rounds 0
  else begin
    let below = odd (depth - 1) rounds in
    if depth mod 50 = 0 then perform Yield;
    below + allocate depth
  end

and odd depth rounds =
  if depth = 0 then work rounds 0
  else begin
    let x = Sys.opaque_identity depth and y = Sys.opaque_identity (depth + 1) in
    let below = even (depth - 1) rounds in
    below + allocate (x + y)
  end

let schedule tasks =
  let queue = Queue.create () in
  let start task =
    match_with task ()
      { retc = Fun.id;
        exnc = raise;
        effc =
          (fun (type a) (e : a Effect.t) ->
            match e with
            | Yield -> Some (fun (k : (a, _) continuation) -> Queue.add (fun () -> continue k ()) queue)
            | _ -> None) }
  in
  List.iter (fun task -> Queue.add (fun () -> start task) queue) tasks;
  (* Every other fiber is resumed from further inside. *)
  let rec next n =
    match Queue.take_opt queue with
    | Some resume -> (if n mod 2 = 0 then resume () else deeper n resume); next (n + 1)
    | None -> ()
  and deeper n resume = resume (); ignore (allocate n) in
  next 0

let work _ =
  let total = ref 0 in
  List.iter
    (fun (fibers, depth, rounds) ->
      schedule (List.init fibers (fun fiber () -> total := !total + even (depth + (7 * fiber)) rounds)))
    [ (2, 150, 30); (3, 400, 20); (12, 90, 10) ];
  !total

let run domains = Team.sum domains work
