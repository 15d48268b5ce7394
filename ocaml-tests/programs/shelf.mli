val add : int -> unit
val seen : int list ref
