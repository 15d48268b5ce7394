(* Blocks of 1,000 words and more, each with the call stack as the runtime's own
   unwinder reports it. *)
let mark =
  let next = ref 1_000 in
  fun () ->
    let stack = Printexc.get_callstack 1_000_000 in
    let size = !next in
    incr next;
    ignore (Sys.opaque_identity (Array.make size 0));
    let line = Buffer.create 1_000 in
    Printf.bprintf line "stack %d" size;
    let slots = Option.value ~default:[||] (Printexc.backtrace_slots stack) in
    Array.iter
      (fun slot ->
        match Printexc.Slot.location slot with
        | None -> ()
        | Some l ->
            let name = Option.value ~default:"" (Printexc.Slot.name slot) in
            Printf.bprintf line " %s@%s:%d:%d-%d" name l.filename l.line_number l.start_char l.end_char)
      slots;
    Buffer.add_char line '\n';
    print_string (Buffer.contents line)

let[@inline always] inlined x = mark (); x + 1
let[@inline always] twice x = inlined (inlined x)
let rec deep n = if n = 0 then (mark (); 0) else 1 + deep (n - 1)

external call : (int -> int) -> int -> int = "call_it"

let rec through_c n = if n = 0 then deep 3 else call (fun m -> through_c (m - 1) + 1) n

let () =
  ignore (twice 1);
  List.iter (fun n -> ignore (deep n)) [ 0; 1; 2; 50; 49; 51; 800; 799; 3 ];
  ignore (List.map (fun n -> through_c n) [ 0; 1; 2; 3 ]);
  (try ignore (Option.map (fun n -> mark (); n / 0) (Some 1)) with Division_by_zero -> mark ());
  let threads = List.init 3 (fun n -> Thread.create (fun () -> ignore (deep n)) ()) in
  List.iter Thread.join threads;
  mark ()
