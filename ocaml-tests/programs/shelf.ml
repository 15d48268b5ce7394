(* What nobody outside sees is held by the closures that use it. *)
let hidden : (int, string) Hashtbl.t = Hashtbl.create 16
let seen = ref []

let add i =
  seen := i :: !seen;
  Hashtbl.replace hidden i (String.make 100 'x')
