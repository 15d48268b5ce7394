open Effect.Deep

let within label f =
  if label = Heaptap.none then f ()
  else
    (* The label outside this fiber; after a resumption, that of the resumer. *)
    let outside = ref (Heaptap.swap_label label) in
    (* Forwards an effect, without the fiber's label while the fiber is suspended. *)
    let forward effect_ k =
      let inside = Heaptap.swap_label !outside in
      match Effect.perform effect_ with
      | result ->
          outside := Heaptap.swap_label inside;
          continue k result
      | exception exn ->
          let backtrace = Printexc.get_raw_backtrace () in
          outside := Heaptap.swap_label inside;
          discontinue_with_backtrace k exn backtrace
    in
    let retc result =
      Heaptap.set_label !outside;
      result
    in
    let exnc exn =
      let backtrace = Printexc.get_raw_backtrace () in
      Heaptap.set_label !outside;
      Printexc.raise_with_backtrace exn backtrace
    in
    match_with f () { retc; exnc; effc = (fun effect_ -> Some (fun k -> forward effect_ k)) }

let with_label name f = within (Heaptap.label name) f
