(* Blocks read from marshalled data: few blocks, which stay young, and many, which do not. *)
let () =
  let small = Marshal.to_string (List.init 20 (fun i -> (i, string_of_int i))) [] in
  let large = Marshal.to_string (Array.init 3_000 (fun i -> Some (float i))) [] in
  let shared = Marshal.to_string (let x = [| 1; 2; 3 |] in [ x; x; x ]) [] in
  let total = ref 0 in
  for _ = 1 to 50 do
    total := !total + List.length (Marshal.from_string small 0 : (int * string) list);
    total := !total + Array.length (Marshal.from_string large 0 : float option array);
    total := !total + List.length (Marshal.from_string shared 0 : int array list)
  done;
  Printf.printf "total %d\n" !total;
  Check.finish ()
