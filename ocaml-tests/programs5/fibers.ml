(* Effects: deep chains of fibers that allocate, generators, a scheduler, exceptions
   that cross fibers, continuations that are discontinued or kept for long. *)
open Effect
open Effect.Deep

type _ Effect.t += Ask : int -> int Effect.t | Yield : unit Effect.t | Give : int -> unit Effect.t

exception Stop of int list

(* Each level is a fiber; the innermost asks the outermost. *)
let rec chain depth =
  if depth = 0 then List.length (List.init 3 (fun i -> perform (Ask i)))
  else
    match_with
      (fun () -> chain (depth - 1) + List.length (Sys.opaque_identity [ depth; depth ]))
      ()
      { retc = (fun n -> n + 1);
        exnc = raise;
        effc =
          (fun (type a) (e : a Effect.t) ->
            match e with
            | Give n -> Some (fun (k : (a, _) continuation) -> continue k () + n)
            | _ -> None) }

let asked f =
  match_with f ()
    { retc = Fun.id;
      exnc = raise;
      effc =
        (fun (type a) (e : a Effect.t) ->
          match e with
          | Ask n ->
              Some
                (fun (k : (a, _) continuation) ->
                  let pair = Sys.opaque_identity (n, string_of_int n) in
                  continue k (fst pair + 1))
          | _ -> None) }

(* Values that a function yields, one at a time, each from its own fiber. *)
let generator f =
  let rec next =
    ref (fun () ->
        match_with
          (fun () -> f (); None) ()
          { retc = (fun r -> next := (fun () -> None); r);
            exnc = raise;
            effc =
              (fun (type a) (e : a Effect.t) ->
                match e with
                | Give n ->
                    Some (fun (k : (a, _) continuation) -> next := (fun () -> continue k ()); Some (n, [ n ]))
                | _ -> None) })
  in
  fun () -> !next ()

let rec drain next = match next () with None -> 0 | Some (n, _) -> n + drain next

(* Tasks that take turns. *)
let schedule tasks =
  let queue = Queue.create () in
  let rec next () = match Queue.take_opt queue with Some resume -> resume (); next () | None -> () in
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
  next ()

let rec search n acc = if n = 0 then raise (Stop acc) else 1 + search (n - 1) (n :: acc)

let rec through depth f = if depth = 0 then f () else asked (fun () -> through (depth - 1) f)

(* Fibers that nobody resumes: the collector frees them, or they are discontinued. *)
let abandoned = ref []

let abandon keep =
  match_with
    (fun () ->
      let held = List.init 10 string_of_int in
      (try perform Yield with Exit -> ());
      List.length held)
    ()
    { retc = Fun.id;
      exnc = raise;
      effc =
        (fun (type a) (e : a Effect.t) ->
          match e with
          | Yield ->
              Some
                (fun (k : (a, int) continuation) ->
                  if keep then begin abandoned := Obj.repr k :: !abandoned; 0 end
                  else discontinue k Exit)
          | _ -> None) }

let work _ =
  let total = ref 0 in
  for i = 0 to 24 do
    total := !total + asked (fun () -> chain (i * 4));
    let numbers = generator (fun () -> for j = 1 to i do perform (Give j) done) in
    total := !total + drain numbers;
    let each task () =
      for turn = 1 to 5 do
        total := !total + List.length (List.init (turn + task) (fun j -> (j, turn)));
        perform Yield
      done
    in
    schedule (List.init 8 each);
    (try total := !total + through i (fun () -> search i []) with Stop l -> total := !total + List.length l);
    total := !total + abandon false;
    (match perform (Ask 0) with _ -> assert false | exception Effect.Unhandled _ -> incr total)
  done;
  !total

let run domains =
  for _ = 1 to 40 do ignore (abandon true) done;
  let total = Team.sum domains work in
  Gc.full_major ();
  total + List.length !abandoned
