(* Labels in domains and fibers. *)
open Effect
open Effect.Deep

type _ Effect.t += Yield : unit Effect.t | Ask : int -> int Effect.t

let mark = Labels.mark

let domains () =
  Heaptap.with_label "parent" (fun () ->
      let domain n =
        Domain.spawn (fun () ->
            mark "";
            let name = Printf.sprintf "domain %d" n in
            Heaptap.with_label name (fun () -> for _ = 1 to 5 do mark name done);
            if n = 1 then Labels.threads ();
            mark "")
      in
      let all = List.init 3 domain in
      mark "parent";
      List.iter Domain.join all;
      mark "parent")

(* A scheduler that has its own label, and may support labels. *)
let schedule wrap tasks =
  let queue = Queue.create () in
  let start task =
    match_with task ()
      { retc = Fun.id;
        exnc = raise;
        effc =
          (fun (type a) (e : a Effect.t) ->
            match e with
            | Yield -> Some (fun (k : (a, _) continuation) -> Queue.add (wrap (fun () -> continue k ())) queue)
            | _ -> None) }
  in
  let none = Heaptap.label "scheduler" in
  List.iter (fun task -> Queue.add (fun () -> Heaptap.set_label none; start task) queue) tasks;
  while not (Queue.is_empty queue) do
    (Queue.take queue) ();
    Heaptap.set_label none;
    mark "scheduler"
  done;
  Heaptap.set_label Heaptap.none

let task with_label n () =
  let name = Printf.sprintf "task %d" n in
  with_label name (fun () ->
      for i = 1 to 4 do
        mark name;
        if i = n then Heaptap.with_label "inner" (fun () -> perform Yield; mark "inner") else perform Yield
      done;
      mark name;
      (match perform (Ask n) with _ -> assert false | exception Unhandled _ -> mark name);
      try with_label "raises" (fun () -> perform Yield; mark "raises"; raise Exit) with Exit -> mark name);
  mark "scheduler"

let () =
  Labels.basics ();
  Labels.threads ();
  domains ();
  schedule Heaptap.resuming (List.init 4 (task Heaptap.with_label));
  schedule Fun.id (List.init 4 (task Heaptap_fibers.with_label));
  mark ""
