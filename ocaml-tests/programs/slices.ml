(* Bigarrays that share their data, and mapped files: `slices ARRAYS FILE`. *)
open Bigarray

let arrays = int_of_string Sys.argv.(1)
let size = 100_000
let whole = List.init arrays (fun _ -> Array1.create char c_layout size)
let slices = List.concat_map (fun array -> List.init 100 (fun at -> Array1.sub array at (size - 100))) whole

(* A slice of a slice, whose array nobody names any more. *)
let orphan = Array1.sub (Array1.sub (Array1.create char c_layout size) 20_000 60_000) 10_000 5_000
let matrix = Array2.create float64 c_layout 100 50
let rows = Array.init 100 (Array2.slice_left matrix)
let flat = reshape_1 (genarray_of_array2 matrix) 5_000

let mapped =
  let file = Unix.openfile Sys.argv.(2) [ Unix.O_RDWR; Unix.O_CREAT ] 0o600 in
  let array = array1_of_genarray (Unix.map_file file char c_layout true [| 3 * size |]) in
  Unix.close file;
  array

let parts = List.init 10 (fun at -> Array1.sub mapped (at * 1_000) 1_000)

let () =
  Gc.full_major ();
  ignore (Sys.opaque_identity (whole, slices, orphan, matrix, rows, flat, mapped, parts))
