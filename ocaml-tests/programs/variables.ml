(* Variables of several modules, whose sizes the scenario knows. With an argument the program goes elsewhere, and then
   takes the file's name away from its own program. *)
let kept = Array.init 10_000 (fun i -> Some i)

module Inner = struct
  let table = ref []
end

let () =
  for i = 1 to 20_000 do Shelf.add i done;
  Inner.table := List.init 5_000 string_of_int;
  if Array.length Sys.argv > 1 then begin
    Sys.rename Sys.argv.(1) (Sys.argv.(1) ^ ".old");
    let other = open_out Sys.argv.(1) in
    output_string other "#!/usr/bin/ocamlrun\nanother program";
    close_out other
  end;
  Sys.chdir "/";
  Gc.full_major ();
  print_endline (string_of_int (List.length !Shelf.seen))
