//! What the aggregation says of programs whose truth is known.
//!
//! [`made`] makes programs and samples them; every test prints its seeds.

mod archive;
mod blocks;
mod calibration;
mod conservation;
mod figures;
mod fragments;
mod growing;
mod leaks;
mod leaks_by_cycles;
mod made;
mod own_code;
mod past;
mod programs;
mod rates;
mod recursion;
