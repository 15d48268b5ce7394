(* Loaded as a plugin, or run by the toplevel. Blocks of 1,000 words and more, each
   with the call stack as the runtime's own unwinder reports it. *)
let mark =
  let next = ref 1_000 in
  fun () ->
    let stack = Printexc.get_callstack 1_000_000 in
    let size = !next in
    incr next;
    ignore (Sys.opaque_identity (Array.make size 0));
    let slots = Option.value ~default:[||] (Printexc.backtrace_slots stack) in
    let places =
      List.filter_map
        (fun slot ->
          let place (l : Printexc.location) =
            let name = Option.value ~default:"" (Printexc.Slot.name slot) in
            Printf.sprintf " %s@%s:%d:%d-%d" name l.filename l.line_number l.start_char l.end_char
          in
          Option.map place (Printexc.Slot.location slot))
        (Array.to_list slots)
    in
    Printf.printf "stack %d%s\n" size (String.concat "" places)

let rec deep n = if n = 0 then (mark (); 0) else 1 + deep (n - 1)

exception Here of int

let rec raised n =
  if n = 0 then (mark (); raise (Here (deep 1)))
  else try 1 + raised (n - 1) with Here m when n mod 2 = 0 -> deep m

let () =
  List.iter (fun n -> ignore (deep n)) [ 0; 1; 2; 50; 49; 51; 100; 99; 3 ];
  List.iter (fun n -> ignore (raised n)) [ 2; 4; 5 ];
  (try ignore (Option.map (fun n -> mark (); n / 0) (Some 1)) with Division_by_zero -> mark ());
  ignore (List.sort (fun a b -> mark (); compare a b) [ 3; 1; 2 ]);
  mark ()
