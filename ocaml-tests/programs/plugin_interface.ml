let work : (int -> int) ref = ref (fun _ -> 0)
