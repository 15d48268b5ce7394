(* A service with a leak: one session in ten is never closed. `server SECONDS` serves that long. *)

type session = { user : string; mutable pages : string list }

let sessions : (int, session) Hashtbl.t = Hashtbl.create 64

let open_session id =
  Hashtbl.replace sessions id { user = Printf.sprintf "user %d" id; pages = [] }

let visit id page =
  let session = Hashtbl.find sessions id in
  session.pages <- Printf.sprintf "<h1>%s: page %d</h1>" session.user page :: session.pages

let close_session id =
  (* The defect: who leaves without a goodbye stays. *)
  if id mod 10 <> 0 then Hashtbl.remove sessions id

let serve id =
  open_session id;
  for page = 1 to 20 do visit id page done;
  close_session id

let () =
  let seconds = if Array.length Sys.argv > 1 then float_of_string Sys.argv.(1) else 600. in
  let stop = Unix.gettimeofday () +. seconds in
  let rec loop id =
    for next = id to id + 99 do serve next done;
    Unix.sleepf 0.005;
    if Unix.gettimeofday () < stop then loop (id + 100)
  in
  loop 0
