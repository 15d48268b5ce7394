(* The young heap changes its size while others allocate and promote. *)
let shared = Array.init 8 (fun _ -> Atomic.make [])

let work member =
  let sizes = [| 4_096; 16_384; 8_192; 65_536; 4_096; 262_144 |] in
  let count = ref 0 in
  for i = 1 to 240 do
    let list = List.init (50 + (i mod 100)) (fun j -> (member, string_of_int j)) in
    Atomic.set shared.((member + i) mod 8) list;
    count := !count + List.length list;
    if i mod 8 = 2 * member mod 8 then
      Gc.set { (Gc.get ()) with minor_heap_size = sizes.((i / 8 + member) mod 6) }
  done;
  !count

let run domains = Team.sum domains work
