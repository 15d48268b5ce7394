(* Memory outside of the heap: bigarrays, channels, buffers, marshalling, custom blocks. *)
let () =
  let rounds = int_of_string Sys.argv.(1) in
  let total = ref 0 in
  let keep = Array.make 64 None in
  for round = 1 to rounds do
    let a = Bigarray.Array1.create Bigarray.char Bigarray.c_layout (1 + (round * 7919 mod 60_000)) in
    Bigarray.Array1.fill a (Char.chr (round land 255));
    keep.(round land 63) <- Some a;
    let text = Marshal.to_string (List.init (round mod 300) string_of_int) [] in
    let back : string list = Marshal.from_string text 0 in
    let channel = open_in Sys.argv.(0) in
    total := (!total + List.length back + in_channel_length channel mod 7 * 0 + Char.code (Bigarray.Array1.get a 0)) land 0xffffff;
    close_in channel;
    if round mod 500 = 0 then Gc.compact ()
  done;
  Printf.printf "%d\n" !total
