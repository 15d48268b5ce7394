(* Everything at once, in several domains, for a while: everything DOMAINS SECONDS SEED; SECONDS is a number, or
   "input": until the input ends.
   Every value that is kept is checked when it is replaced. *)
open Effect
open Effect.Deep

exception Rung

type _ Effect.t += Turn : unit Effect.t

type kept = { sum : int; what : what }

and what =
  | List of (int * string) list
  | Array of int array
  | Floats of float array
  | Big of (int, Bigarray.int_elt, Bigarray.c_layout) Bigarray.Array1.t
  | Kept of kept list
  | Nothing

let rec sum_of = function
  | List l -> List.fold_left (fun sum (i, s) -> sum + i + String.length s) 0 l
  | Array a -> Array.fold_left ( + ) 0 a
  | Floats a -> int_of_float (Array.fold_left ( +. ) 0. a)
  | Big b -> Bigarray.Array1.dim b + b.{0}
  | Kept l -> List.fold_left (fun sum k -> sum + sum_of k.what) 0 l
  | Nothing -> 0

let keep what = { sum = sum_of what; what }
let nothing = keep Nothing
let slots = 256
let shared = Array.init slots (fun _ -> Atomic.make nothing)
let weak = Weak.create slots
let finalised = Atomic.make 0
let deadline = ref infinity

let verify k = if sum_of k.what <> k.sum then failwith "a kept value has changed"

let replace random k =
  let old = Atomic.exchange shared.(Random.State.int random slots) k in
  verify old;
  old

let fresh random =
  let n = Random.State.int random 200 in
  match Random.State.int random 8 with
  | 0 -> Array (Array.make (n * 5) n)
  | 1 -> Floats (Array.init n float)
  | 2 ->
      let big = Bigarray.Array1.create Bigarray.int Bigarray.c_layout (n + 1) in
      Bigarray.Array1.fill big n;
      Big big
  | 3 -> Kept (List.init (n / 20) (fun _ -> Atomic.get shared.(Random.State.int random slots)))
  | 4 -> List (Marshal.from_string (Marshal.to_string (List.init n (fun i -> (i, string_of_int i))) []) 0)
  | _ -> List (List.init n (fun i -> (i, string_of_int i)))

(* Shallow, so that values kept inside kept values do not accumulate. *)
let rec flat = function Kept l -> Kept (List.filter (fun k -> match k.what with Kept _ -> false | _ -> true) l) | w -> w

let rec deep n f = if n = 0 then f () else let r = deep (n - 1) f in Sys.opaque_identity (r + 0)

let in_fibers random depth f =
  let rec nest depth =
    if depth = 0 then f ()
    else
      match_with (fun () -> nest (depth - 1)) ()
        { retc = Fun.id;
          exnc = raise;
          effc =
            (fun (type a) (e : a Effect.t) ->
              match e with
              | Turn when depth mod 2 = 1 ->
                  Some
                    (fun (k : (a, _) continuation) ->
                      if Random.State.int random 10 = 0 then discontinue k Exit else continue k ())
              | _ -> None) }
  in
  try nest depth with Exit -> 0

(* Not in 5.3: if a domain ends while others compact the heap, what it shared with them may be lost
   (ocaml/ocaml#13739). *)
let compact () = if Sys.ocaml_version < "5.4" then Gc.full_major () else Gc.compact ()

let step random =
  let put () = ignore (replace random (keep (flat (fresh random)))); 1 in
  match Random.State.int random 1_000 with
  | 0 -> compact ()
  | 1 | 2 -> Gc.full_major ()
  | 3 | 4 | 5 -> Gc.minor ()
  | 6 | 7 -> Gc.set { (Gc.get ()) with minor_heap_size = 4_096 lsl Random.State.int random 6 }
  | n when n < 100 ->
      ignore (in_fibers random (1 + (n mod 7)) (fun () -> (try perform Turn with Unhandled _ -> ()); put ()))
  | n when n < 150 -> ignore (deep (n * 5) put)
  | n when n < 200 ->
      let block = ref (string_of_int n) in
      Gc.finalise (fun _ -> Atomic.incr finalised) block;
      Weak.set weak (n mod slots) (Some block)
  | n when n < 250 -> ( match Weak.get weak (n mod slots) with Some { contents } -> assert (contents <> "") | None -> ())
  | _ -> ignore (put ())

let running () = Unix.gettimeofday () < !deadline

let rec life depth seed =
  let random = Random.State.make [| seed |] in
  let count = ref 0 in
  while running () do
    incr count;
    (try step random with Rung -> ());
    if !count mod 400 = 0 && depth > 0 then
      (* A short-lived domain, and one with threads. *)
      ignore
        (Domain.join
           (Domain.spawn (fun () ->
                let turn n = for _ = 1 to 30 do step (Random.State.make [| seed; n; !count |]) done in
                List.iter Thread.join (List.init 2 (fun n -> Thread.create turn n));
                turn 3)))
  done;
  !count

let () =
  let domains = int_of_string Sys.argv.(1) in
  let seed = int_of_string Sys.argv.(3) in
  (match Sys.argv.(2) with
  | "input" ->
      let wait () = (try ignore (input_line stdin) with End_of_file -> ()); deadline := 0. in
      ignore (Thread.create wait ())
  | seconds -> deadline := Unix.gettimeofday () +. float_of_string seconds);
  let total = Team.sum domains (fun member -> life 1 (seed + member)) in
  Array.iter (fun slot -> verify (Atomic.get slot)) shared;
  Gc.full_major ();
  if total > domains then print_endline "survived";
  Check.finish ()
