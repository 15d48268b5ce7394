(* OCaml calls C, which allocates and calls OCaml, which performs effects, and so on;
   effects do not cross C, exceptions do. *)
open Effect
open Effect.Deep

external call : (int -> int) -> int -> int = "call_it"
external make : int -> string list = "make_list"

type _ Effect.t += Ask : int -> int Effect.t

let answering f =
  match_with f ()
    { retc = Fun.id;
      exnc = raise;
      effc =
        (fun (type a) (e : a Effect.t) ->
          match e with
          | Ask n -> Some (fun (k : (a, _) continuation) -> continue k (List.length (make (n mod 4))))
          | _ -> None) }

let rec down n =
  if n = 0 then List.length (make 5)
  else if n mod 3 = 0 then answering (fun () -> perform (Ask n) + down (n - 1))
  else call (fun m -> down (m - 1) + 1) n

let work member =
  let total = ref member in
  for i = 1 to 60 do
    total := !total + down (i mod 20);
    (try ignore (call (fun _ -> failwith "through C") 1) with Failure _ -> incr total);
    try ignore (answering (fun () -> call (fun n -> perform (Ask n)) i)) with Effect.Unhandled _ -> incr total
  done;
  !total

let run domains = Team.sum domains work
