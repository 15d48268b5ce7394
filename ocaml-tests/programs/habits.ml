(* A server's memory: scratch, sessions, rings, caches, phases, sized by a seed.
   A share of what it allocates is kept for ever.

     habits SEED SHARE SECONDS *)

let number i = float_of_string Sys.argv.(i)
let () = Random.init (int_of_float (number 1))
let share = number 2
let seconds = number 3

let size = Array.init 8 (fun _ -> 2 + Random.int 60)
let leaked = ref []
let leak words = leaked := Bytes.create (8 * words) :: !leaked (* the leak *)

let scratch () =
  ignore (Sys.opaque_identity (List.init size.(0) (fun i -> (i, i))))

(* Each session ends after a number of others have begun. *)
let sessions = Hashtbl.create 1000
let session_count = 2_000 + Random.int 8_000
let session turn =
  Hashtbl.replace sessions (turn mod session_count) (Array.make size.(1) turn)

let ring = Array.make (1_000 + Random.int 20_000) ""
let into_ring turn = ring.(turn mod Array.length ring) <- String.make (8 * size.(2)) 'r'

let cache = Hashtbl.create 1000
let cache_size = 500 + Random.int 5_000
let cached turn =
  let key = turn * 7919 mod cache_size in
  if not (Hashtbl.mem cache key) then Hashtbl.add cache key (Bytes.create (8 * size.(3)))

let phase = ref []
let phase_length = 3_000 + Random.int 30_000
let in_phase turn =
  if turn mod phase_length = 0 then phase := [];
  phase := Array.make (size.(4)) 0. :: !phase

let queue = Queue.create ()
let queue_length = 1_000 + Random.int 10_000
let through_queue () =
  Queue.add (ref (Array.make (size.(5)) ())) queue;
  if Queue.length queue > queue_length then ignore (Queue.take queue)

let buffer = Buffer.create 16
let buffered turn =
  Buffer.add_string buffer (string_of_int turn);
  if Buffer.length buffer > 100 * size.(6) then Buffer.reset buffer

let rec work turn until kept =
  if turn land 1023 <> 0 || Unix.gettimeofday () < until then begin
    scratch (); session turn; into_ring turn; cached turn; in_phase turn;
    through_queue (); buffered turn;
    (* With its header and its list cell. *)
    let words = size.(7) + 5 in
    if kept < share *. Gc.minor_words () then begin
      leak (words - 5);
      work (turn + 1) until (kept +. float words)
    end else work (turn + 1) until kept
  end

let () =
  work 1 (Unix.gettimeofday () +. seconds) 0.;
  Printf.printf "%d\n" (List.length !leaked)
