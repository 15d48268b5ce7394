(* Ways to die, and to live on, of a program whose flight recorder writes what came before. *)

external real_fault : unit -> unit = "recorded_fault"
external real_division : unit -> unit = "recorded_division"
external real_abort : unit -> unit = "recorded_abort"
external deep_in_c : unit -> unit = "recorded_deep"
external send : int -> unit = "recorded_send"
external own_handler : int -> unit = "recorded_own_handler"

let kept = ref []
let table = Array.make 200 []

let[@inline never] keep n = kept := Array.make 10 n :: !kept
let[@inline never] work n = table.(n mod 200) <- List.init 30 (fun i -> i + n)

(* When it worked last. *)
let last = ref 0.

(* For so many seconds. *)
let busy seconds =
  let deadline = Unix.gettimeofday () +. seconds in
  let n = ref 0 in
  while last := Unix.gettimeofday (); !last < deadline do
    incr n;
    work !n;
    if !n mod 50 = 0 then keep !n;
    if !n mod 20 = 0 then Unix.sleepf 0.001
  done

let[@inline never] rec deep n = if n < 0 then 0 else 1 + deep (n + 1)

let overflow () =
  match deep 0 with
  | _ -> print_endline "no overflow"
  | exception Stack_overflow -> print_endline "Stack_overflow"

let () =
  let seconds = float_of_string Sys.argv.(2) in
  let argument () = int_of_string Sys.argv.(3) in
  (* Two stacks that are only at the beginning: what they keep is alive to the end. *)
  for n = 1 to 100 do keep n done;
  print_endline "ready";
  if Sys.argv.(1) <> "storm" then busy seconds;
  (match Sys.getenv_opt "LAST_WORK" with
   | Some file -> let out = open_out file in Printf.fprintf out "%.6f" !last; close_out out
   | None -> ());
  match Sys.argv.(1) with
  | "live" -> print_endline "done"
  | "raise" -> raise (Failure "nobody catches this")
  | "raise_handled" ->
      Printexc.set_uncaught_exception_handler (fun exn _ -> prerr_endline ("own: " ^ Printexc.to_string exn));
      raise Not_found
  | "raise_caught" ->
      (try raise Not_found with Not_found -> ());
      print_endline "done"
  | "raise_in_thread" ->
      Thread.join (Thread.create (fun () -> raise Not_found) ());
      print_endline "done"
  | "exit" -> exit 2
  | "send" -> send (argument ()); Unix.sleepf 2.; print_endline "survived"
  | "own" ->
      Sys.set_signal (argument ()) (Sys.Signal_handle (fun _ -> print_endline "handled"));
      Unix.kill (Unix.getpid ()) (argument ());
      busy 0.1
  | "own_in_c" -> own_handler (argument ()); send (argument ()); print_endline "done"
  | "ignored" ->
      Sys.set_signal (argument ()) Sys.Signal_ignore;
      Unix.kill (Unix.getpid ()) (argument ());
      busy 0.1
  | "default" ->
      Sys.set_signal (argument ()) Sys.Signal_default;
      Unix.kill (Unix.getpid ()) (argument ());
      Unix.sleepf 2.
  | "fault" -> real_fault ()
  | "division" -> real_division ()
  | "abort" -> real_abort ()
  | "deep_in_c" -> deep_in_c ()
  | "overflow" -> overflow (); overflow ()
  | "overflow_and_fault" -> overflow (); Stdlib.flush stdout; real_fault ()
  | "fork" ->
      (match Unix.fork () with
       | 0 -> busy 0.3; Unix.kill (Unix.getpid ()) Sys.sigterm; Unix.sleepf 2.
       | child ->
           (match snd (Unix.waitpid [] child) with
            | Unix.WSIGNALED s when s = Sys.sigterm -> print_endline "the child ended by SIGTERM"
            | _ -> print_endline "the child ended otherwise");
           busy 0.1)
  | "storm" ->
      let deadline = Unix.gettimeofday () +. seconds in
      while Unix.gettimeofday () < deadline do for n = 1 to 1000 do work n; keep n done; kept := [] done
  | "hoard" ->
      let hoarded = ref [] in
      while true do hoarded := Bytes.make 1_000_000 'x' :: !hoarded; work 1; Unix.sleepf 0.01 done
  | other -> failwith other
