(* Holds a list in the frame of [hold], and a closure, sends itself SIGUSR2, and waits until the file that is named
   first exists. *)
let rec wait file =
  if not (Sys.file_exists file) then begin
    ignore (Sys.opaque_identity (List.init 1_000 string_of_int));
    wait file
  end

let[@inline never] ask file =
  Unix.kill (Unix.getpid ()) Sys.sigusr2;
  wait file

let[@inline never] multiplier factor =
  let rec multiply x y = if x = 0 then y else multiply (x - 1) (y + factor) in
  multiply

let kept = ref (multiplier 1)

let[@inline never] hold file =
  let held = List.init 321 string_of_int in
  (* An exception handler on the stack is no frame. *)
  (try ask file (* here *) with Not_found -> ());
  List.length held

let () =
  kept := multiplier (Array.length Sys.argv);
  Printf.printf "%d %d\n" (hold Sys.argv.(1)) (!kept 3 4)
