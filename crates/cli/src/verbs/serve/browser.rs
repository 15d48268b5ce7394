//! Opens the page in the user's browser, if there is a screen. Serving does not depend on
//! it: whatever fails here, the address was printed.

use std::env;
use std::process::{Command, Stdio};
use std::thread;

/// Starts the browser.
pub(super) fn open(url: &str) {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    if !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") {
        return;
    }
    let chosen = env::var("BROWSER").unwrap_or_default();
    let Some((program, arguments)) = command(&chosen, url) else { return };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut child) = command.spawn() {
        // Waited for, so that it does not stay behind as a zombie.
        thread::spawn(move || child.wait());
    }
}

/// The first command of `$BROWSER`, a list separated by colons, in which `%s` stands for
/// the address; else `xdg-open`.
fn command(chosen: &str, url: &str) -> Option<(String, Vec<String>)> {
    let first = chosen.split(':').map(str::trim).find(|command| !command.is_empty());
    let mut words: Vec<String> =
        first.unwrap_or("xdg-open").split_whitespace().map(str::to_owned).collect();
    if words.iter().any(|word| word.contains("%s")) {
        words.iter_mut().for_each(|word| *word = word.replace("%s", url));
    } else {
        words.push(url.to_owned());
    }
    let program = words.first()?.clone();
    Some((program, words.split_off(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_the_first_of_the_list() {
        let words = |chosen: &str| {
            let (program, arguments) = command(chosen, "http://x").unwrap();
            format!("{program} {}", arguments.join(" "))
        };
        assert_eq!(words(""), "xdg-open http://x");
        assert_eq!(words("firefox -P a:other"), "firefox -P a http://x");
        assert_eq!(words(":open --url=%s -n"), "open --url=http://x -n");
    }
}
