//! The bytes of events, as the plain writer puts them.

use crate::debug_info::OwnedLocation;

/// File names, most recent first, each with its definitions, likewise.
pub(super) type RecentNames = Vec<(Vec<u8>, Vec<Vec<u8>>)>;

pub(super) fn put_event(body: &mut Vec<u8>, code: u32, time: u64) {
    body.extend((code << 25 | (time % (1 << 25)) as u32).to_le_bytes());
}

pub(super) fn put_string(body: &mut Vec<u8>, text: &[u8]) {
    body.extend(text.iter().take_while(|&&byte| byte != 0));
    body.push(0);
}

pub(super) fn put_vint(body: &mut Vec<u8>, value: i64) {
    match value {
        0..=252 => body.push(value as u8),
        253..=0xffff => {
            body.push(253);
            body.extend((value as u16).to_le_bytes());
        }
        -0x8000_0000..=0x7fff_ffff => {
            body.push(254);
            body.extend((value as i32).to_le_bytes());
        }
        _ => {
            body.push(255);
            body.extend(value.to_le_bytes());
        }
    }
}

pub(super) fn put_location(body: &mut Vec<u8>, location: &OwnedLocation, files: &mut RecentNames) {
    let file = files.iter().position(|(name, _)| *name == location.file);
    let entry = file.map_or_else(|| (location.file.clone(), Vec::new()), |at| files.remove(at));
    files.insert(0, entry);
    files.truncate(31);
    let definitions = &mut files[0].1;
    let definition = definitions.iter().position(|name| *name == location.definition);
    let entry = definition.map_or_else(|| location.definition.clone(), |at| definitions.remove(at));
    definitions.insert(0, entry);
    definitions.truncate(31);
    let packed = u64::from(location.line)
        + (u64::from(location.start_char) << 20)
        + (u64::from(location.end_char) << 28)
        + ((file.unwrap_or(31) as u64) << 38)
        + ((definition.unwrap_or(31) as u64) << 43);
    body.extend(&packed.to_le_bytes()[..6]);
    if file.is_none() {
        put_string(body, &location.file);
    }
    if definition.is_none() {
        put_string(body, &location.definition);
    }
}
