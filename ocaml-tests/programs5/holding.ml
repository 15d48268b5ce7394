(* What domains, fibers and their handlers hold, while a snapshot is taken: a file that appears when it is complete.

   dls: values of two domains. handlers: three handlers around the running fiber, each of which holds an array.
   thread: the same on another thread. suspended: continuations that nobody resumes, some of them deep.
   leaking: more and more of them. *)
open Effect
open Effect.Deep

type _ Effect.t += Stop : unit Effect.t

let file = Sys.argv.(2)

let take_snapshot () =
  Unix.kill (Unix.getpid ()) Sys.sigusr2;
  while not (Sys.file_exists file) do
    ignore (Sys.opaque_identity (Bytes.create 64));
    Unix.sleepf 0.001
  done

let key = Domain.DLS.new_key (fun () -> [||])

let dls () =
  Domain.DLS.set key (Array.make 500_000 0);
  let ready = Atomic.make false and over = Atomic.make false in
  let other =
    Domain.spawn (fun () ->
        Domain.DLS.set key (Array.make 250_000 0);
        let local = Array.make 100_000 0 in
        Atomic.set ready true;
        while not (Atomic.get over) do Unix.sleepf 0.001 done;
        Array.length local + Array.length (Domain.DLS.get key))
  in
  while not (Atomic.get ready) do Domain.cpu_relax () done;
  take_snapshot ();
  Atomic.set over true;
  print_int (Domain.join other + Array.length (Domain.DLS.get key))

let rec nested levels work =
  if levels = 0 then work ()
  else begin
    let held = Array.make 100_000 levels in
    match_with
      (fun () -> nested (levels - 1) work)
      ()
      { retc = (fun () -> held.(0) <- held.(0) + 1); exnc = raise; effc = (fun (type a) (_ : a Effect.t) -> None) }
  end

let rec deep depth = if depth = 0 then perform Stop else begin deep (depth - 1); ignore (Sys.opaque_identity depth) end

let kept : (unit, unit) continuation list ref = ref []

let suspend depth =
  match_with deep depth
    { retc = Fun.id; exnc = raise;
      effc = (fun (type a) (performed : a Effect.t) ->
          match performed with
          | Stop -> Some (fun (k : (a, unit) continuation) -> kept := k :: !kept)
          | _ -> None) }

let () =
  match Sys.argv.(1) with
  | "dls" -> dls ()
  | "handlers" -> nested 3 take_snapshot
  | "thread" -> Thread.join (Thread.create (fun () -> nested 3 take_snapshot) ())
  | "suspended" ->
    for _ = 1 to 5_000 do suspend 0 done;
    for _ = 1 to 10 do suspend 10_000 done;
    Gc.full_major ();
    take_snapshot ();
    print_int (List.length !kept)
  | "leaking" ->
    (* No snapshot: the time line has what grows. *)
    for step = 1 to 10 do
      for _ = 1 to 1_200 do suspend 0 done;
      suspend 10_000;
      Gc.full_major ();
      Unix.sleepf 0.12
    done;
    Gc.full_major ();
    Unix.sleepf 0.3;
    print_int (List.length !kept)
  | _ -> exit 2
