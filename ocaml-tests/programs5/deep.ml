(* deep KIND DEPTH ROUNDS: allocates ROUNDS blocks at the end of a deep stack. KIND is `plain`, a recursion; `nested`,
   where each call is in an effect handler; `turns`, two plain recursions in fibers that take turns. *)
open Effect
open Effect.Deep

type _ Effect.t += Yield : unit Effect.t

let depth = int_of_string Sys.argv.(2)
let rounds = int_of_string Sys.argv.(3)
let allocate n = ignore (Sys.opaque_identity (Sys.opaque_identity n, n))

(* Two functions with frames of two sizes, so that the stack is no uniform recursion. *)
let rec even n work = if n = 0 then work () else 1 + odd (n - 1) work

and odd n work =
  if n = 0 then work ()
  else
    let x = Sys.opaque_identity n and y = Sys.opaque_identity (n + 1) in
    let below = even (n - 1) work in
    below + x - y + 2

let ignoring : (int, int) handler = { retc = Fun.id; exnc = raise; effc = (fun _ -> None) }
let rec nested n work = if n = 0 then work () else 1 + match_with (fun () -> nested (n - 1) work) () ignoring

let queue = Queue.create ()

let spawn f =
  match_with f ()
    { retc = ignore;
      exnc = raise;
      effc =
        (fun (type a) (e : a Effect.t) ->
          match e with
          | Yield -> Some (fun (k : (a, _) continuation) -> Queue.add (fun () -> continue k ()) queue)
          | _ -> None) }

let work pause rounds () = for n = 1 to rounds do allocate n; pause () done; 0

let () =
  match Sys.argv.(1) with
  | "plain" -> ignore (even depth (work ignore rounds))
  | "nested" -> ignore (nested depth (work ignore rounds))
  | _ ->
      let task () = spawn (fun () -> even depth (work (fun () -> perform Yield) (rounds / 2))) in
      Queue.add task queue;
      Queue.add task queue;
      while not (Queue.is_empty queue) do (Queue.pop queue) () done
