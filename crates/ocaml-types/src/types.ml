(* Prints, as one JSON document, the types of the variables of an OCaml program's modules, and the
   definitions of all types that these mention.

     ocaml -I +compiler-libs ocamlcommon.cma types.ml NAMES DIRECTORY...
     ocaml -I +compiler-libs ocamlcommon.cma types.ml NAMES --files FILES

   NAMES is a file with the names of the program's modules, one a line, as a heap snapshot has
   them (Stdlib.Map for the unit Stdlib__Map). Units are looked for in the directories and all
   directories below, or among the files that are listed in FILES, one a line; and then in the
   standard library.

   Types are seen through: Env loads the signature of each unit's implementation, from its .cmt,
   in place of its interface. Abstract types are opaque only where there is no .cmt.

   Lines of the form (*@ since V *), (*@ before V *), (*@ since V before W *) and (*@ always *) select
   the lines after them by the version of the compiler; the tool reads them before it runs this file.
   What is for 5.4 follows the compiler's sources (typing/types.mli), and was not run. *)

open Types

(*@ before 4.14 *)
let get_desc ty = (Ctype.repr ty).desc
let type_id ty = (Ctype.repr ty).id

let row_arguments row =
  let argument (name, field) =
    match Btype.row_field_repr field with
    | Rpresent argument -> [ (name, argument) ]
    | Reither (_, argument :: _, _, _) -> [ (name, Some argument) ]
    | Reither (_, [], _, _) -> [ (name, None) ]
    | Rabsent -> []
  in
  List.concat (List.map argument (Btype.row_repr row).row_fields)

(*@ since 4.14 *)
let get_desc = Types.get_desc
let type_id = Types.get_id

let row_arguments row =
  let argument (name, field) =
    match row_field_repr field with
    | Rpresent argument -> [ (name, argument) ]
    | Reither (_, argument :: _, _) -> [ (name, Some argument) ]
    | Reither (_, [], _) -> [ (name, None) ]
    | Rabsent -> []
  in
  List.concat (List.map argument (row_fields row))

(*@ before 4.13 *)
let package_path = function Tpackage (path, _, _) -> Some path | _ -> None

let variant_constructors decl =
  match decl.type_kind with
  | Type_variant constructors -> Some (constructors, decl.type_unboxed.unboxed)
  | _ -> None

(*@ since 4.13 before 5.4 *)
let package_path = function Tpackage (path, _) -> Some path | _ -> None

(*@ since 5.4 *)
let package_path = function Tpackage { pack_path; _ } -> Some pack_path | _ -> None

(*@ since 4.13 *)
let variant_constructors decl =
  match decl.type_kind with
  | Type_variant (constructors, representation) ->
      Some (constructors, representation = Variant_unboxed)
  | _ -> None

(*@ before 5.0 *)
let env = Env.initial_safe_string

(*@ since 5.0 *)
let env = Env.initial

(*@ before 5.1 *)
let plain_includes_are_stored = false

(*@ since 5.1 *)
let plain_includes_are_stored = true

(*@ before 5.4 *)
let tuple_parts (parts : type_expr list) = parts

(*@ since 5.4 *)
let tuple_parts (parts : (string option * type_expr) list) = List.map snd parts

(*@ before 5.2 *)
let set_loader load =
  Persistent_env.Persistent_signature.load :=
    fun ~unit_name ->
      match load unit_name with
      | None -> None
      | Some (filename, cmi) -> Some { Persistent_env.Persistent_signature.filename; cmi }

(*@ since 5.2 *)
let set_loader load =
  Persistent_env.Persistent_signature.load :=
    fun ~allow_hidden:_ ~unit_name ->
      match load unit_name with
      | None -> None
      | Some (filename, cmi) ->
          let visibility = Load_path.Visible in
          Some { Persistent_env.Persistent_signature.filename; cmi; visibility }

(*@ always *)

(* Files that could not be used, with the reason. *)
let skipped : (string * string) list ref = ref []
let skip file reason = skipped := (file, reason) :: !skipped

(* Units and their files. *)

type unit_files = { mutable cmt : string option; mutable cmi : string option }

let units : (string, unit_files) Hashtbl.t = Hashtbl.create 256

let files_of name =
  match Hashtbl.find_opt units name with
  | Some files -> files
  | None ->
      let files = { cmt = None; cmi = None } in
      Hashtbl.add units name files;
      files

let same_contents a b = try Digest.file a = Digest.file b with Sys_error _ -> false

(* The first file of a unit counts. A second one that differs is of another program. *)
let add_file path =
  let name = String.capitalize_ascii (Filename.remove_extension (Filename.basename path)) in
  let keep current set =
    match current with
    | None -> set (Some path)
    | Some first when same_contents first path -> ()
    | Some first ->
        skip path (Printf.sprintf "the unit %s is already in %s, which differs" name first)
  in
  match Filename.extension path with
  | ".cmt" ->
      let files = files_of name in
      keep files.cmt (fun file -> files.cmt <- file)
  | ".cmi" ->
      let files = files_of name in
      keep files.cmi (fun file -> files.cmi <- file)
  | _ -> ()

(* A link can lead back to a directory above, hence the limits. *)
let deepest = 40
let directories_left = ref 100_000

let rec add_directory depth directory =
  decr directories_left;
  match Sys.readdir directory with
  | exception Sys_error reason -> skip directory reason
  | entries ->
      Array.sort compare entries;
      let visit entry =
        let path = Filename.concat directory entry in
        match Filename.extension entry with
        | ".cmt" | ".cmi" -> add_file path
        | _ ->
            let is_directory = try Sys.is_directory path with Sys_error _ -> false in
            if is_directory && depth < deepest && !directories_left > 0 then
              add_directory (depth + 1) path
      in
      Array.iter visit entries

(* Units of the standard library stand behind all others. *)
let add_standard_library () =
  let add_from directory =
    let add entry =
      let name = String.capitalize_ascii (Filename.remove_extension entry) in
      let extension = Filename.extension entry in
      if extension = ".cmt" || extension = ".cmi" then begin
        let path = Filename.concat directory entry in
        let files = files_of name in
        if extension = ".cmt" && files.cmt = None && files.cmi = None then files.cmt <- Some path;
        if extension = ".cmi" && files.cmi = None then files.cmi <- Some path
      end
    in
    match Sys.readdir directory with
    | exception Sys_error _ -> ()
    | entries ->
        (* Of a unit, .cmt sorts behind .cmi, and must come first. *)
        Array.sort (fun a b -> compare b a) entries;
        Array.iter add entries
  in
  let root = Config.standard_library in
  let below = [ "unix"; "threads"; "str"; "dynlink"; "runtime_events" ] in
  List.iter add_from (root :: List.map (Filename.concat root) below)

(* Reading files. *)

let magic_of path =
  let channel = open_in_bin path in
  let length = String.length Config.cmt_magic_number in
  let magic = try really_input_string channel length with End_of_file -> "" in
  close_in channel;
  magic

(* Whether this compiler can read the file. A .cmt may begin with a .cmi. *)
let is_readable path =
  match magic_of path with
  | exception Sys_error reason ->
      skip path reason;
      false
  | magic when magic = Config.cmt_magic_number || magic = Config.cmi_magic_number -> true
  | magic when String.length magic > 8 && String.sub magic 0 8 = "Caml1999" ->
      skip path
        (Printf.sprintf "written by another version of the compiler (%s; OCaml %s has %s)" magic
           Sys.ocaml_version
           (if Filename.extension path = ".cmi" then Config.cmi_magic_number
            else Config.cmt_magic_number));
      false
  | _ ->
      skip path "not a file of the OCaml compiler";
      false

let reading path read =
  if not (is_readable path) then None
  else
    match read path with
    | result -> Some result
    | exception error ->
        let reason =
          match error with
          | Cmi_format.Error _ | Cmt_format.Error _ -> "damaged, or of another version"
          | Failure reason | Sys_error reason -> reason
          | error -> Printexc.to_string error
        in
        skip path reason;
        None

type loaded = {
  structure : Typedtree.structure option; (* of a .cmt *)
  interface : signature option; (* what the unit exports, in the order of its fields *)
  file : string;
}

let loaded_units : (string, loaded option) Hashtbl.t = Hashtbl.create 256

(* The interface of a unit without a .mli is in its .cmt; a .cmi of another build does not fit. *)
let load_unit name =
  match Hashtbl.find_opt loaded_units name with
  | Some loaded -> loaded
  | None ->
      let loaded =
        match Hashtbl.find_opt units name with
        | None -> None
        | Some files ->
            let cmt =
              match files.cmt with
              | None -> None
              | Some path -> (
                  match reading path Cmt_format.read with
                  | Some (cmi, Some cmt) -> Some (path, cmi, cmt)
                  | Some (_, None) ->
                      skip path "no typed tree in it";
                      None
                  | None -> None)
            in
            let cmi =
              match (files.cmi, cmt) with
              | Some path, _ -> (
                  match reading path Cmi_format.read_cmi with
                  | Some cmi -> Some (path, cmi)
                  | None -> None)
              | None, Some (path, Some cmi, _) -> Some (path, cmi)
              | None, _ -> None
            in
            let own_digest (cmi : Cmi_format.cmi_infos) =
              match List.assoc_opt cmi.cmi_name cmi.cmi_crcs with
              | Some digest -> digest
              | None -> None
            in
            let structure =
              match (cmt, cmi) with
              | Some (path, _, { Cmt_format.cmt_modname; _ }), _ when cmt_modname <> name ->
                  skip path (Printf.sprintf "of the unit %s, as its name does not say" cmt_modname);
                  None
              | Some (path, _, { Cmt_format.cmt_interface_digest = Some digest; _ }), Some (other, cmi)
                when own_digest cmi <> None && own_digest cmi <> Some digest ->
                  skip path (Printf.sprintf "of another build than %s" other);
                  None
              | Some (_, _, { Cmt_format.cmt_annots = Cmt_format.Implementation structure; _ }), _ ->
                  Some structure
              | _ -> None
            in
            let file =
              match (structure, files.cmt, files.cmi) with
              | Some _, Some path, _ | _, _, Some path | _, Some path, None -> path
              | _ -> name
            in
            let interface =
              match cmi with Some (_, cmi) -> Some cmi.Cmi_format.cmi_sign | None -> None
            in
            if structure = None && interface = None then None else Some { structure; interface; file }
      in
      Hashtbl.replace loaded_units name loaded;
      loaded

(* The signature of an implementation, in which no type is hidden. *)

(* Items of a structure come before those that shadow them. A path leads to the last of a name. *)
let without_shadowed signature =
  let seen = Hashtbl.create 64 in
  let keep item =
    match item with
    | Sig_type (id, _, _, _) ->
        let name = Ident.name id in
        if Hashtbl.mem seen (`Type, name) then false
        else begin
          Hashtbl.add seen (`Type, name) ();
          true
        end
    | Sig_module (id, _, _, _, _) ->
        let name = Ident.name id in
        if Hashtbl.mem seen (`Module, name) then false
        else begin
          Hashtbl.add seen (`Module, name) ();
          true
        end
    | _ -> true
  in
  List.rev (List.filter keep (List.rev signature))

(* Identifiers of a unit and those made here must differ. A unit has far fewer than these. *)
let () =
  for _ = 1 to 3_000_000 do
    ignore (Ident.create_local "")
  done

let fresh_names module_type = Subst.modtype Subst.Make_local Subst.identity module_type

let include_count = ref 0

(* Module types in which the body of each module is seen, whatever its signature hides. [bodies] has
   the modules of the unit by their identifiers.

   Where a functor is applied to something without a path, the types of the result have none either.
   Then the argument becomes a part of the result, under the name of the parameter. *)
let rec open_signature bodies (structure : Typedtree.structure) =
  let note (binding : Typedtree.module_binding) =
    match binding.mb_id with
    | Some id -> Hashtbl.replace bodies (Ident.unique_name id) binding.mb_expr
    | None -> ()
  in
  let included = Hashtbl.create 8 in
  let hidden = ref [] in
  List.iter
    (fun (item : Typedtree.structure_item) ->
      match item.str_desc with
      | Typedtree.Tstr_module binding -> note binding
      | Typedtree.Tstr_recmodule bindings -> List.iter note bindings
      | Typedtree.Tstr_include { incl_mod; incl_type; _ } ->
          hidden := open_include bodies included incl_mod incl_type @ !hidden
      | _ -> ())
    structure.str_items;
  let opened item =
    match item with
    | Sig_module (id, presence, declaration, recursive, visibility) -> (
        match Hashtbl.find_opt bodies (Ident.unique_name id) with
        | None -> item
        | Some body ->
            let md_type = open_module bodies declaration.md_type body in
            Sig_module (id, presence, { declaration with md_type }, recursive, visibility))
    | Sig_type (id, ({ type_manifest = None; _ } as declaration), recursive, visibility) -> (
        match Hashtbl.find_opt included (Ident.unique_name id) with
        | None -> item
        | Some path ->
            let arguments = declaration.type_params in
            let manifest = Btype.newgenty (Tconstr (path, arguments, ref Mnil)) in
            let type_manifest = Some manifest in
            Sig_type (id, { declaration with type_manifest }, recursive, visibility))
    | _ -> item
  in
  !hidden @ without_shadowed (List.map opened structure.str_type)

(* A hidden module with what is included, which abstract types then lead to. *)
and open_include bodies included (body : Typedtree.module_expr) items =
  match open_module bodies body.mod_type body with
  | Mty_signature _ as md_type ->
      incr include_count;
      let id = Ident.create_local (Printf.sprintf "(include %d)" !include_count) in
      let note = function
        | Sig_type (item, _, _, _) ->
            let path = Path.Pdot (Path.Pident id, Ident.name item) in
            Hashtbl.replace included (Ident.unique_name item) path
        | _ -> ()
      in
      List.iter note items;
      [ hidden_module id md_type ]
  | _ -> []

and hidden_module id md_type =
  let declaration =
    { md_type; md_attributes = []; md_loc = Location.none; md_uid = Uid.internal_not_actually_unique }
  in
  Sig_module (id, Mp_present, declaration, Trec_not, Hidden)

and open_module bodies declared (body : Typedtree.module_expr) =
  match (declared, body.mod_desc) with
  | Mty_alias _, _ -> declared
  | _, Typedtree.Tmod_structure structure -> Mty_signature (open_signature bodies structure)
  | _, Typedtree.Tmod_constraint (inner, _, _, _) -> open_module bodies inner.mod_type inner
  | _, Typedtree.Tmod_functor (_, result) -> (
      match body.mod_type with
      | Mty_functor (parameter, result_type) ->
          Mty_functor (parameter, open_module bodies result_type result)
      | other -> other)
  | _, Typedtree.Tmod_apply (f, argument, _) when not (has_path argument) -> (
      match open_functor bodies f with
      | Some (Mty_functor (Named (Some id, _), Mty_signature items)) ->
          let argument = open_module bodies argument.mod_type argument in
          Mty_signature (without_shadowed (hidden_module id argument :: items))
      | _ -> body.mod_type)
  | _ -> body.mod_type

and has_path (body : Typedtree.module_expr) =
  match body.mod_desc with
  | Typedtree.Tmod_ident _ -> true
  | Typedtree.Tmod_constraint (inner, _, _, _) -> has_path inner
  | Typedtree.Tmod_apply (f, argument, _) -> has_path f && has_path argument
  | _ -> false

and open_functor bodies (f : Typedtree.module_expr) =
  let scraped module_type = try Env.scrape_alias env module_type with _ -> module_type in
  match f.mod_desc with
  | Typedtree.Tmod_ident (Path.Pident id, _) when not (Ident.persistent id) -> (
      match Hashtbl.find_opt bodies (Ident.unique_name id) with
      | Some body -> Some (fresh_names (open_module bodies body.mod_type body))
      | None -> None)
  | Typedtree.Tmod_ident (path, _) -> (
      match Env.find_module path env with
      | exception _ -> None
      | { md_type; _ } -> Some (fresh_names (scraped md_type)))
  | Typedtree.Tmod_constraint (inner, _, _, _) -> open_functor bodies inner
  | _ -> None

let () =
  set_loader (fun name ->
      match load_unit name with
      | None -> None
      | Some { structure; interface; file } ->
          let signature =
            match (structure, interface) with
            | Some structure, _ -> Some (open_signature (Hashtbl.create 64) structure)
            | None, interface -> interface
          in
          let infos cmi_sign =
            { Cmi_format.cmi_name = name; cmi_sign; cmi_crcs = []; cmi_flags = [] }
          in
          Option.map (fun signature -> (file, infos signature)) signature)

(* Names. *)

(* As the snapshot has them: Stdlib.Map for Stdlib__Map. *)
let readable name =
  let length = String.length name in
  let out = Buffer.create length in
  let rec go index =
    if index < length then
      if
        index + 2 < length && Buffer.length out > 0 && name.[index] = '_' && name.[index + 1] = '_'
      then begin
        Buffer.add_char out '.';
        go (index + 2)
      end
      else begin
        Buffer.add_char out name.[index];
        go (index + 1)
      end
  in
  go 0;
  Buffer.contents out

let without_stdlib name =
  let prefix = "Stdlib." in
  let length = String.length prefix in
  if String.length name > length && String.sub name 0 length = prefix then
    String.sub name length (String.length name - length)
  else name

let rec path_name = function
  | Path.Pident id -> readable (Ident.name id)
  | Path.Pdot (path, name) when String.length name > 0 && name.[0] = '(' -> path_name path
  | Path.Pdot (path, name) -> path_name path ^ "." ^ name
  | Path.Papply (f, argument) ->
      path_name f ^ "(" ^ without_stdlib (path_name argument) ^ ")"
  | path -> Path.name path

(* Whether a path means the same everywhere: it starts at a unit or a predefined type. *)
let rec is_global = function
  | Path.Pident id -> Ident.persistent id || Ident.is_predef id
  | Path.Pdot (path, _) -> is_global path
  | Path.Papply (f, argument) -> is_global f && is_global argument
  | _ -> false

let rec canonical_module path =
  let path =
    match path with
    | Path.Pdot (inner, name) -> Path.Pdot (canonical_module inner, name)
    | Path.Papply (f, argument) -> Path.Papply (canonical_module f, canonical_module argument)
    | path -> path
  in
  try Env.normalize_module_path None env path with _ -> path

let canonical_type path =
  match path with
  | Path.Pdot (inner, name) -> Path.Pdot (canonical_module inner, name)
  | path -> path

(* The tables of the document. *)

type expression =
  | Unknown
  | Object
  | Parameter of int
  | Named of int * int list
  | Tuple of int list
  | Function of int * int
  | Polymorphic of (string * int option) list
  | Module of int

type field = { label : string; contents : int }

type definition =
  | Abstract
  | Open
  | Builtin of string
  | Alias of int
  | Record of field list
  | Float_record of string list
  | Variant of string list * (string * field list) list
  | Module_block of field list

let expressions : (expression, int) Hashtbl.t = Hashtbl.create 1024
let all_expressions = ref []
let expression_count = ref 0

let intern expression =
  match Hashtbl.find_opt expressions expression with
  | Some index -> index
  | None ->
      let index = !expression_count in
      incr expression_count;
      Hashtbl.add expressions expression index;
      all_expressions := expression :: !all_expressions;
      index

let definitions : (string, int) Hashtbl.t = Hashtbl.create 1024
let all_definitions : (int, string * int * definition) Hashtbl.t = Hashtbl.create 1024
let definition_count = ref 0
let to_define : (int * Path.t) Queue.t = Queue.create ()

(* Functors applied to functors could go on for ever. *)
let most_definitions = 500_000

let fresh_definition () =
  let index = !definition_count in
  incr definition_count;
  index

let definition_of path =
  let path = canonical_type path in
  let key = Path.name path in
  match Hashtbl.find_opt definitions key with
  | Some index -> Some index
  | None when !definition_count >= most_definitions -> None
  | None ->
      let index = fresh_definition () in
      Hashtbl.add definitions key index;
      Queue.add (index, path) to_define;
      Some index

(* From types of the compiler to expressions. *)

type context = {
  parameters : (int * int) list; (* from the id of a type variable to its index *)
  paths : (string, Path.t) Hashtbl.t; (* from a local identifier to where it is for others *)
}

let rec global_path context path =
  match path with
  | Path.Pident id -> (
      match Hashtbl.find_opt context.paths (Ident.unique_name id) with
      | Some path -> path
      | None -> path)
  | Path.Pdot (inner, name) -> Path.Pdot (global_path context inner, name)
  | Path.Papply (f, argument) ->
      Path.Papply (global_path context f, global_path context argument)
  | path -> path

let note_names context prefix signature =
  let note id =
    Hashtbl.replace context.paths (Ident.unique_name id) (Path.Pdot (prefix, Ident.name id))
  in
  List.iter
    (function
      | Sig_type (id, _, _, _) | Sig_module (id, _, _, _, _) | Sig_modtype (id, _, _) -> note id
      | _ -> ())
    signature

let deepest_type = 100

let rec convert ?(depth = 0) context ty =
  let inner ty = convert ~depth:(depth + 1) context ty in
  if depth > deepest_type then intern Unknown
  else
    match get_desc ty with
    | Tvar _ | Tunivar _ -> (
        match List.assoc_opt (type_id ty) context.parameters with
        | Some index -> intern (Parameter index)
        | None -> intern Unknown)
    | Tarrow (_, argument, result, _) -> intern (Function (inner argument, inner result))
    | Ttuple parts -> intern (Tuple (List.map inner (tuple_parts parts)))
    | Tconstr (path, arguments, _) -> (
        let path = global_path context path in
        if not (is_global path) then intern Unknown
        else
          match definition_of path with
          | Some index -> intern (Named (index, List.map inner arguments))
          | None -> intern Unknown)
    | Tobject _ -> intern Object
    | Tpoly (ty, _) -> inner ty
    | Tvariant row ->
        let argument (name, ty) = (name, Option.map inner ty) in
        intern (Polymorphic (List.sort compare (List.map argument (row_arguments row))))
    | desc -> (
        match package_path desc with
        | None -> intern Unknown
        | Some path ->
            let path = global_path context path in
            module_expression context ~depth:(depth + 1) ~name:("module " ^ path_name path) None
              (Mty_ident path))

(* The block of a module. [prefix] is the module's path, if it has one. *)
and module_expression context ~depth ~name prefix module_type =
  if depth > deepest_type then intern Unknown
  else
    match module_type with
    | Mty_signature signature ->
        Option.iter (fun prefix -> note_names context prefix signature) prefix;
        let fields = module_fields context ~depth prefix signature in
        let index = fresh_definition () in
        Hashtbl.replace all_definitions index (name, 0, Module_block fields);
        intern (Module index)
    | Mty_ident path -> (
        let path = global_path context path in
        match if is_global path then Env.find_modtype path env else raise Not_found with
        | exception _ -> intern Unknown
        | { mtd_type = Some module_type; _ } ->
            module_expression context ~depth:(depth + 1) ~name prefix module_type
        | _ -> intern Unknown)
    | Mty_functor _ -> intern (Function (intern Unknown, intern Unknown))
    | _ -> intern Unknown

and module_fields context ~depth prefix signature =
  List.filter_map
    (fun item ->
      match slot_of item with
      | None -> None
      | Some (_, name) -> Some { label = name; contents = item_type context ~depth prefix item })
    signature

(* The namespace and name of an item that has a field in its module's block. *)
and slot_of = function
  | Sig_value (id, { val_kind = Val_reg; _ }, _) -> Some (`Value, Ident.name id)
  | Sig_typext (id, _, _, _) -> Some (`Extension, Ident.name id)
  | Sig_module (id, Mp_present, _, _, _) -> Some (`Module, Ident.name id)
  | Sig_class (id, _, _, _) -> Some (`Class, Ident.name id)
  | _ -> None

and item_type context ~depth prefix = function
  | Sig_value (_, description, _) -> convert ~depth context description.val_type
  | Sig_typext _ -> intern (Named (builtin "extension_constructor", []))
  | Sig_module (id, _, declaration, _, _) ->
      let path = Option.map (fun prefix -> Path.Pdot (prefix, Ident.name id)) prefix in
      let name =
        match path with Some path -> path_name path | None -> Ident.name id
      in
      module_expression context ~depth:(depth + 1) ~name:("module " ^ name) path
        declaration.md_type
  | _ -> intern Unknown

and builtin name =
  match Hashtbl.find_opt definitions name with
  | Some index -> index
  | None ->
      let index = fresh_definition () in
      Hashtbl.add definitions name index;
      Hashtbl.replace all_definitions index (name, 0, Builtin name);
      index

(* Definitions of types. *)

let builtins =
  [ "int"; "char"; "string"; "bytes"; "float"; "array"; "nativeint"; "int32"; "int64"; "lazy_t";
    "floatarray"; "iarray"; "extension_constructor" ]

let is_immediate declaration =
  match declaration.type_immediate with
  | Type_immediacy.Always | Type_immediacy.Always_on_64bits -> true
  | Type_immediacy.Unknown -> false

let fields_of_labels context labels =
  let field label =
    { label = Ident.name label.ld_id; contents = convert context label.ld_type }
  in
  List.map field labels

(* The parameters of a type, as a constructor sees them: one with a result type of its own names
   them by that. *)
let constructor_context context constructor =
  match constructor.cd_res with
  | None -> context
  | Some result -> (
      match get_desc result with
      | Tconstr (_, arguments, _) ->
          let parameters =
            List.mapi (fun index ty -> (type_id ty, index)) arguments
            |> List.filter (fun (id, _) ->
                   List.exists
                     (fun ty ->
                       type_id ty = id && match get_desc ty with Tvar _ -> true | _ -> false)
                     arguments)
          in
          { context with parameters }
      | _ -> { context with parameters = [] })

let constructor_fields context constructor =
  let context = constructor_context context constructor in
  match constructor.cd_args with
  | Cstr_tuple types ->
      List.map (fun ty -> { label = ""; contents = convert context ty }) types
  | Cstr_record labels -> fields_of_labels context labels

let define_variant context constructors is_unboxed =
  let all =
    List.map
      (fun constructor -> (Ident.name constructor.cd_id, constructor_fields context constructor))
      constructors
  in
  match all with
  | [ (_, [ { contents; _ } ]) ] when is_unboxed -> Alias contents
  | all ->
      let constant, others = List.partition (fun (_, fields) -> fields = []) all in
      Variant (List.map fst constant, others)

let define_record context labels representation =
  match (representation, fields_of_labels context labels) with
  | Record_float, fields -> Float_record (List.map (fun field -> field.label) fields)
  | Record_unboxed _, [ { contents; _ } ] -> Alias contents
  | _, fields -> Record fields

(* Atomics are primitive, and so are the types that the compiler knows. *)
let define_primitive path =
  match path with
  | Path.Pdot (Path.Pident unit, name)
    when List.mem (Ident.name unit, name) [ ("Stdlib__Atomic", "t"); ("Stdlib", "atomic_t") ] ->
      Record [ { label = "contents"; contents = intern (Parameter 0) } ]
  | Path.Pident id when Ident.is_predef id && List.mem (Ident.name id) builtins ->
      Builtin (Ident.name id)
  | _ -> Abstract

let define path =
  match Env.find_type path env with
  | exception _ -> (0, Abstract)
  | declaration ->
      let parameters = List.mapi (fun index ty -> (type_id ty, index)) declaration.type_params in
      let context = { parameters; paths = Hashtbl.create 1 } in
      let by_kind () =
        match (declaration.type_kind, variant_constructors declaration) with
        | _, Some (constructors, is_unboxed) -> define_variant context constructors is_unboxed
        | Type_record (labels, representation), _ -> define_record context labels representation
        | Type_open, _ -> Open
        | _ -> (
            match define_primitive path with
            | Abstract when is_immediate declaration -> Builtin "int"
            | other -> other)
      in
      let definition =
        match declaration.type_manifest with
        | Some manifest -> (
            let target = convert context manifest in
            (* A type that repeats a definition is the same one, if that one can be found. *)
            match (get_desc manifest, declaration.type_kind) with
            | Tconstr (other, _, _), (Type_record _ | Type_variant _ | Type_open) -> (
                match Env.find_type (canonical_type other) env with
                | exception _ -> by_kind ()
                | _ -> Alias target)
            | _ -> Alias target)
        | None -> by_kind ()
      in
      (List.length declaration.type_params, definition)

let define_all () =
  while not (Queue.is_empty to_define) do
    let index, path = Queue.pop to_define in
    let arity, definition = define path in
    Hashtbl.replace all_definitions index (without_stdlib (path_name path), arity, definition)
  done

(* The fields of a unit's block, in their order (Translmod.transl_store_implementation without
   flambda, 4.12 to 5.3): what is exported, in the order of the interface; other items of the
   structure; then items of structures within it. *)

let nested_items context unit_path (structure : Typedtree.structure) =
  let rec below prefix names (structure : Typedtree.structure) =
    List.concat_map (fun item -> nested prefix names item) structure.str_items
  and nested prefix names (item : Typedtree.structure_item) =
    match item.str_desc with
    | Typedtree.Tstr_open { open_expr = { mod_desc = Typedtree.Tmod_structure inner; _ }; _ } ->
        all prefix names inner
    | Typedtree.Tstr_include
        { incl_mod =
            { mod_desc =
                Typedtree.Tmod_constraint ({ mod_desc = Typedtree.Tmod_structure inner; _ }, _, _, _);
              _ };
          _ } ->
        all prefix names inner
    | Typedtree.Tstr_include { incl_mod = { mod_desc = Typedtree.Tmod_structure inner; _ }; _ }
      when plain_includes_are_stored ->
        all prefix names inner
    | Typedtree.Tstr_module
        { mb_id; mb_presence = Mp_present;
          mb_expr =
            ( { mod_desc = Typedtree.Tmod_structure inner; _ }
            | { mod_desc =
                  Typedtree.Tmod_constraint
                    ({ mod_desc = Typedtree.Tmod_structure inner; _ }, _, _, _);
                _ } );
          _ } -> (
        match mb_id with
        | Some id ->
            let name = Ident.name id in
            all (Path.Pdot (prefix, name)) (names ^ name ^ ".") inner
        | None -> all (Path.Pdot (prefix, "_")) (names ^ "_.") inner)
    | _ -> []
  (* Each item of a structure, followed by what is within it. *)
  and all prefix names inner =
    note_names context prefix inner.str_type;
    let types = Hashtbl.create 16 in
    let note item id = Hashtbl.replace types (Ident.unique_name id) item in
    List.iter
      (fun item ->
        match item with
        | Sig_value (id, _, _) | Sig_typext (id, _, _, _) | Sig_module (id, _, _, _, _)
        | Sig_class (id, _, _, _) ->
            note item id
        | _ -> ())
      inner.str_type;
    let field id =
      let contents =
        match Hashtbl.find_opt types (Ident.unique_name id) with
        | Some item -> item_type context ~depth:0 (Some prefix) item
        | None -> intern Unknown
      in
      { label = names ^ Ident.name id; contents }
    in
    List.concat_map
      (fun (item : Typedtree.structure_item) ->
        List.map field (own_identifiers item) @ nested prefix names item)
      inner.str_items
  and own_identifiers (item : Typedtree.structure_item) =
    let bound signature =
      List.filter_map
        (fun item ->
          match (slot_of item, item) with
          | Some _, (Sig_value (id, _, _) | Sig_typext (id, _, _, _) | Sig_class (id, _, _, _)) ->
              Some id
          | Some _, Sig_module (id, _, _, _, _) -> Some id
          | _ -> None)
        signature
    in
    match item.str_desc with
    | Typedtree.Tstr_value (_, bindings) -> Typedtree.let_bound_idents bindings
    | Typedtree.Tstr_typext { tyext_constructors; _ } ->
        List.map (fun (c : Typedtree.extension_constructor) -> c.ext_id) tyext_constructors
    | Typedtree.Tstr_exception { tyexn_constructor; _ } -> [ tyexn_constructor.ext_id ]
    | Typedtree.Tstr_module { mb_id = Some id; mb_presence = Mp_present; _ } -> [ id ]
    | Typedtree.Tstr_recmodule bindings ->
        List.filter_map (fun (binding : Typedtree.module_binding) -> binding.mb_id) bindings
    | Typedtree.Tstr_open { open_bound_items; _ } -> bound open_bound_items
    | Typedtree.Tstr_class classes ->
        List.map (fun ((c : _ Typedtree.class_infos), _) -> c.ci_id_class) classes
    | Typedtree.Tstr_include { incl_type; _ } -> bound incl_type
    | _ -> []
  in
  below unit_path "" structure

(* The namespace and name of an item that a later one of the same name shadows, and whether it has
   a field: primitives and aliases of modules do not. *)
let shadowing_of item =
  match (slot_of item, item) with
  | Some (space, name), _ -> Some (space, name, true)
  | None, Sig_value (id, _, _) -> Some (`Value, Ident.name id, false)
  | None, Sig_module (id, _, _, _, _) -> Some (`Module, Ident.name id, false)
  | _ -> None

let hidden_items exported signature =
  let is_exported = Hashtbl.create 64 in
  List.iter
    (fun item ->
      match slot_of item with Some key -> Hashtbl.replace is_exported key () | None -> ())
    exported;
  (* From the last item on: the first one of a name that is seen is the exported one. *)
  List.fold_left
    (fun kept item ->
      match shadowing_of item with
      | None -> kept
      | Some (space, name, has_field) ->
          let was_exported = Hashtbl.mem is_exported (space, name) in
          if was_exported then Hashtbl.remove is_exported (space, name);
          if has_field && not was_exported then item :: kept else kept)
    [] (List.rev signature)

let fields_of_unit name loaded =
  let unit_path = Path.Pident (Ident.create_persistent name) in
  let new_context () = { parameters = []; paths = Hashtbl.create 64 } in
  match (loaded.interface, loaded.structure) with
  | None, _ -> None
  | Some exported, structure ->
      let context = new_context () in
      note_names context unit_path exported;
      let fields = module_fields context ~depth:0 (Some unit_path) exported in
      let rest =
        match structure with
        | None -> []
        | Some structure ->
            let context = new_context () in
            note_names context unit_path structure.str_type;
            let hidden = hidden_items exported structure.str_type in
            module_fields context ~depth:0 (Some unit_path) hidden
            @ nested_items context unit_path structure
      in
      Some (fields @ rest)

(* Output. *)

let out = Buffer.create 65536

let put_string text =
  Buffer.add_char out '"';
  String.iter
    (fun c ->
      match c with
      | '"' -> Buffer.add_string out "\\\""
      | '\\' -> Buffer.add_string out "\\\\"
      | c when Char.code c < 32 -> Buffer.add_string out (Printf.sprintf "\\u%04x" (Char.code c))
      | c -> Buffer.add_char out c)
    text;
  Buffer.add_char out '"'

let put_int number = Buffer.add_string out (string_of_int number)

let put_list put items =
  Buffer.add_char out '[';
  List.iteri
    (fun index item ->
      if index > 0 then Buffer.add_char out ',';
      put item)
    items;
  Buffer.add_char out ']'

let put_key key =
  put_string key;
  Buffer.add_char out ':'

let put_object members =
  Buffer.add_char out '{';
  List.iteri
    (fun index (key, put) ->
      if index > 0 then Buffer.add_char out ',';
      put_key key;
      put ())
    members;
  Buffer.add_string out "}"

let text value () = put_string value
let number value () = put_int value
let flag value () = Buffer.add_string out (if value then "true" else "false")
let numbers values () = put_list put_int values

let put_field { label; contents } =
  put_object [ ("name", text label); ("type", number contents) ]

let fields values () = put_list put_field values

let put_expression = function
  | Unknown -> put_object [ ("kind", text "unknown") ]
  | Object -> put_object [ ("kind", text "object") ]
  | Parameter index -> put_object [ ("kind", text "parameter"); ("index", number index) ]
  | Named (index, arguments) ->
      put_object
        [ ("kind", text "named"); ("definition", number index); ("arguments", numbers arguments) ]
  | Tuple parts -> put_object [ ("kind", text "tuple"); ("parts", numbers parts) ]
  | Function (argument, result) ->
      put_object
        [ ("kind", text "function"); ("argument", number argument); ("result", number result) ]
  | Polymorphic cases ->
      let put_case (name, argument) =
        put_object
          (("name", text name)
          :: (match argument with None -> [] | Some index -> [ ("type", number index) ]))
      in
      put_object
        [ ("kind", text "polymorphic variant"); ("cases", fun () -> put_list put_case cases) ]
  | Module index -> put_object [ ("kind", text "module"); ("definition", number index) ]

let put_definition index =
  let name, arity, definition =
    match Hashtbl.find_opt all_definitions index with
    | Some found -> found
    | None -> ("_", 0, Abstract)
  in
  let rest =
    match definition with
    | Abstract -> [ ("kind", text "abstract") ]
    | Open -> [ ("kind", text "open") ]
    | Builtin builtin -> [ ("kind", text "builtin"); ("builtin", text builtin) ]
    | Alias target -> [ ("kind", text "alias"); ("type", number target) ]
    | Record values -> [ ("kind", text "record"); ("fields", fields values) ]
    | Float_record labels ->
        [ ("kind", text "float record"); ("fields", fun () -> put_list put_string labels) ]
    | Variant (constant, others) ->
        let put_constructor (name, values) =
          put_object [ ("name", text name); ("fields", fields values) ]
        in
        [ ("kind", text "variant");
          ("constants", fun () -> put_list put_string constant);
          ("constructors", fun () -> put_list put_constructor others) ]
    | Module_block values -> [ ("kind", text "module"); ("fields", fields values) ]
  in
  put_object (("name", text name) :: ("arity", number arity) :: rest)

let put_unit (name, loaded, values) =
  put_object
    [ ("name", text (readable name));
      ("file", text loaded.file);
      ("complete", flag (loaded.structure <> None));
      ("fields", fields values) ]

let read_lines path =
  let channel = open_in_bin path in
  let rec read lines =
    match input_line channel with
    | line -> read (line :: lines)
    | exception End_of_file -> List.rev lines
  in
  let lines = read [] in
  close_in channel;
  lines

let add_sources = function
  | [ "--files"; list ] -> List.iter add_file (read_lines list)
  | directories -> List.iter (add_directory 0) directories

let () =
  match Array.to_list Sys.argv with
  | _ :: names :: sources ->
      let wanted = Hashtbl.create 256 in
      List.iter (fun name -> Hashtbl.replace wanted name ()) (read_lines names);
      add_sources sources;
      let own = Hashtbl.length units in
      add_standard_library ();
      let all = List.sort compare (Hashtbl.fold (fun name _ rest -> name :: rest) units []) in
      let described =
        List.filter_map
          (fun name ->
            if not (Hashtbl.mem wanted (readable name)) then None
            else
              match load_unit name with
              | None -> None
              | Some loaded -> (
                  match fields_of_unit name loaded with
                  | Some values -> Some (name, loaded, values)
                  | None ->
                      skip loaded.file "its .cmi is not there, so the order of its fields is unknown";
                      None
                  | exception error ->
                      skip loaded.file (Printexc.to_string error);
                      None))
          all
      in
      define_all ();
      put_object
        [ ("format", text "heaptap types 1");
          ("ocaml", text Sys.ocaml_version);
          ("flambda", flag Config.flambda);
          ("units_found", number own);
          ( "skipped",
            fun () ->
              put_list
                (fun (file, reason) -> put_object [ ("file", text file); ("reason", text reason) ])
                (List.rev !skipped) );
          ("units", fun () -> put_list put_unit described);
          ("expressions", fun () -> put_list put_expression (List.rev !all_expressions));
          ("definitions", fun () -> put_list put_definition (List.init !definition_count Fun.id)) ];
      print_string (Buffer.contents out)
  | _ ->
      prerr_endline "usage: types.ml NAMES (DIRECTORY... | --files FILES)";
      exit 2
