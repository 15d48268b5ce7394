(* Holds data of every kind, sends itself SIGUSR2, waits until the file that is named first exists, and prints what the
   runtime keeps then: blocks, words without headers. *)

external others_sleep : unit -> unit = "kept_others_sleep"

type node = { mutable next : node option; name : string; data : int array }
type _ Effect.t += Wait : int Effect.t

let nodes : (int, node) Hashtbl.t = Hashtbl.create 100
let keys = ref []
let weak = Weak.create 50
let ephemerons : (string ref, string) Ephemeron.K1.t list ref = ref []
let continuations : Obj.t list ref = ref []
let large = Array.make 100_000 "large"
let finalised = ref 0

let suspend number =
  let rec deep depth =
    if depth = 0 then Effect.perform Wait
    else
      let text = string_of_int depth in
      deep (depth - 1) + String.length text
  in
  let effc (type a) (e : a Effect.t) =
    match e with
    | Wait ->
        Some
          (fun (k : (a, int) Effect.Deep.continuation) ->
            continuations := Obj.repr k :: !continuations;
            number)
    | _ -> None
  in
  ignore (Effect.Deep.match_with deep 50 { retc = Fun.id; exnc = raise; effc })

let fill () =
  for i = 1 to 100 do
    suspend i
  done;
  for i = 1 to 20_000 do
    let node = { next = None; name = "node" ^ string_of_int i; data = Array.make (i mod 10) i } in
    Option.iter (fun before -> before.next <- Some node) (Hashtbl.find_opt nodes (i - 1));
    Hashtbl.replace nodes i node;
    if i mod 100 = 0 then Gc.finalise (fun _ -> incr finalised) node;
    if i mod 150 = 0 then Gc.finalise_last (fun () -> incr finalised) node;
    if i mod 400 = 0 then begin
      Weak.set weak ((i / 400) - 1) (Some node);
      let key = ref "key" in
      if i mod 800 = 0 then keys := key :: !keys;
      ephemerons := Ephemeron.K1.make key (String.make 100 'x') :: !ephemerons
    end
  done

(* Domains that have ended leave finalisers and pools behind. *)
let ended () =
  let work i () =
    let blocks = List.init 1_000 (fun j -> Array.make 3 (i + j)) in
    List.iter (Gc.finalise (fun _ -> incr finalised)) blocks;
    Array.make 500 (ref blocks)
  in
  List.init 3 (fun i -> Domain.join (Domain.spawn (work i)))

let wait file = function
  | "busy" ->
      while not (Sys.file_exists file) do
        for _ = 1 to 1_000 do
          ignore (Sys.opaque_identity (Array.make 20 0))
        done
      done
  | _ ->
      while not (Sys.file_exists file) do
        Unix.sleepf 0.05
      done

let () =
  fill ();
  let kept = ended () in
  others_sleep ();
  let file = Sys.argv.(1) in
  (* So that no large block is dead. *)
  Gc.full_major ();
  Gc.full_major ();
  Unix.kill (Unix.getpid ()) Sys.sigusr2;
  wait file Sys.argv.(2);
  for _ = 1 to 3 do
    Gc.full_major ()
  done;
  let stat = Gc.stat () in
  Printf.printf "%d %d\n" stat.live_blocks (stat.live_words - stat.live_blocks);
  ignore (Sys.opaque_identity (kept, large, !keys, !ephemerons, weak, nodes, !continuations))
