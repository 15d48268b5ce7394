(* Closures and lazies: a tower of suspended computations, forced from its top, so that nearly all is allocated
   about 190 frames deep (two for each level); between allocations there is some arithmetic. *)
let height = 93

let rec tower level leaf =
  if level = 0 then lazy (leaf ())
  else
    let below = tower (level - 1) leaf in
    lazy (1 + Lazy.force below)

(* Compositions of closures, made and called at the bottom of the tower. *)
let compose f g x = f (g x)
let rec adders n acc = if n = 0 then acc else adders (n - 1) (compose (fun x -> x + n) acc)

let rec stream n = lazy (Seq.Cons (n, fun () -> Lazy.force (stream (n + 1))))
let rec take n seq sum =
  if n = 0 then sum else match seq () with Seq.Nil -> sum | Seq.Cons (x, rest) -> take (n - 1) rest (sum + x)

let rec gcd a b = if b = 0 then a else gcd b (a mod b)

let work rounds () =
  let sum = ref 0 in
  for round = 1 to rounds do
    sum := !sum + adders 8 (fun x -> x) round;
    for prime = 1 to 4 do
      sum := !sum + gcd ((round + prime) * 6_469_693_230) 1_836_311_903
    done;
    sum := !sum + take 8 (fun () -> Lazy.force (stream round)) 0
  done;
  !sum land 0xffffff

let () =
  let rounds = int_of_string Sys.argv.(1) in
  let sum = ref 0 in
  for _ = 1 to rounds do
    sum := !sum + Lazy.force (tower height (work 500))
  done;
  Printf.printf "checksum %d\n" !sum
