(* A store whose types are hidden. *)

type entry
type 'a t

val create : unit -> 'a t
val add : 'a t -> string -> 'a -> unit
val entry : int -> entry option -> entry
val main : entry t
