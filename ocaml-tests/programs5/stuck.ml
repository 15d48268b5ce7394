(* A domain is in C code, without a blocking section, until there is a byte in a file:

     stuck FILE (idle | busy)

   The first domain prints "ready" and then "alive" for each line of its input, for which it waits in the kernel or
   without allocating. *)

external read : Unix.file_descr -> bool = "stuck_read"
external has_input : unit -> bool = "stuck_has_input" [@@noalloc]

let () =
  let file = Unix.openfile Sys.argv.(1) [ Unix.O_RDWR ] 0 in
  let begun = Atomic.make false in
  let domain = Domain.spawn (fun () -> Atomic.set begun true; read file) in
  while not (Atomic.get begun) do Domain.cpu_relax () done;
  print_endline "ready";
  (try
     while true do
       if Sys.argv.(2) = "busy" then while not (has_input ()) do () done;
       ignore (input_line stdin);
       print_endline "alive"
     done
   with End_of_file -> ());
  Printf.printf "%b\n" (Domain.join domain)
