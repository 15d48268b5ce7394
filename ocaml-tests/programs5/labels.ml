(* Blocks of 1,000 words and more, each with the label it should have: "label SIZE NAME",
   or without a name. *)
let next = Atomic.make 1_000

let mark expected =
  let size = Atomic.fetch_and_add next 1 in
  ignore (Sys.opaque_identity (Array.make size 0));
  print_string (Printf.sprintf "label %d %s\n" size expected)

let basics () =
  mark "";
  Heaptap.with_label "GET /" (fun () ->
      mark "GET /";
      Heaptap.with_label "parse; @ it" (fun () -> mark "parse; @ it");
      mark "GET /";
      try Heaptap.with_label "fails" (fun () -> mark "fails"; raise Exit) with Exit -> mark "GET /");
  mark "";
  let kept = Heaptap.label "kept" in
  Heaptap.set_label kept;
  mark "kept";
  assert (Heaptap.current () = kept && Heaptap.label "kept" = kept);
  assert (Heaptap.swap_label Heaptap.none = kept);
  mark "";
  Heaptap.within kept (fun () -> mark "kept")

(* Each thread has its own label, and keeps it while others run. *)
let threads () =
  Heaptap.with_label "main" (fun () ->
      let thread n () =
        mark "";
        let name = Printf.sprintf "thread %d" n in
        Heaptap.with_label name (fun () ->
            for _ = 1 to 5 do
              Thread.yield ();
              mark name
            done)
      in
      let all = List.init 4 (fun n -> Thread.create (thread n) ()) in
      mark "main";
      List.iter Thread.join all;
      mark "main")
