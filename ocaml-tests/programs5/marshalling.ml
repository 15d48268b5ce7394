(* Blocks from marshalled data, and what marshalling itself allocates. *)
let work member =
  let small = Marshal.to_string (List.init (20 + member) (fun i -> (i, string_of_int i))) [] in
  let large = Marshal.to_string (Array.init 2_000 (fun i -> Some (float i))) [] in
  let total = ref 0 in
  for i = 1 to 20 do
    total := !total + List.length (Marshal.from_string small 0 : (int * string) list);
    let large = (Marshal.from_string large 0 : float option array) in
    total := !total + Array.length large;
    if i mod 5 = 0 then total := !total + String.length (Marshal.to_string large [ Marshal.No_sharing ])
  done;
  !total

let run domains = Team.sum domains work
