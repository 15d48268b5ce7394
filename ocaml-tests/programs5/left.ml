(* A domain allocates arrays of 33 words that the program keeps, and ends. Nobody else has looked after them when a
   snapshot is asked for by SIGUSR2: no domain begins, and no major collection ends. Waits until the file that is named
   first exists. *)
let kept = ref []

let () =
  Domain.join (Domain.spawn (fun () -> kept := List.init 1_000 (fun index -> Array.make 33 index)));
  Unix.kill (Unix.getpid ()) Sys.sigusr2;
  while not (Sys.file_exists Sys.argv.(1)) do
    Unix.sleepf 0.01
  done;
  Printf.printf "%d\n" (List.length (Sys.opaque_identity !kept))
