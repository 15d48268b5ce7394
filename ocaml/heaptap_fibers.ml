open Effect.Deep

let within label f =
  if label = Heaptap.none then f ()
  else
    (* The label around this fiber: when it is resumed, that of whoever resumes it. *)
    let outside = ref (Heaptap.swap_label label) in
    (* Passes an effect on, and does not keep the fiber's label while it waits. *)
    let pass asked k =
      let inside = Heaptap.swap_label !outside in
      match Effect.perform asked with
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
    match_with f () { retc; exnc; effc = (fun asked -> Some (fun k -> pass asked k)) }

let with_label name f = within (Heaptap.label name) f
