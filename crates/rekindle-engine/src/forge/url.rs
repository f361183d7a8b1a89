//! The host and project of a remote, from any of the forms in which git writes an address.

/// A project at a forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub host: String,
    /// `owner/name`, with the groups in between.
    pub project: String,
}

impl Place {
    /// The place that an address names; `None` for a directory.
    pub fn of(url: &str) -> Option<Self> {
        let (host, path) = match url.split_once("://") {
            Some(("file", _)) => return None,
            Some((_, rest)) => rest.split_once('/')?,
            // The short form of ssh: a colon before any slash.
            None => url.split_once(':').filter(|(host, _)| !host.contains('/') && !host.is_empty())?,
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let host = host.split_once(':').map_or(host, |(host, _)| host).to_ascii_lowercase();
        let project = path.trim_matches('/');
        let project = project.strip_suffix(".git").unwrap_or(project).to_owned();
        (!host.is_empty() && project.contains('/')).then_some(Self { host, project })
    }
}

/// A text encoded as one part of an address.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_address_names_its_place() {
        let place = Some(Place { host: "github.com".to_owned(), project: "o/r".to_owned() });
        for url in [
            "https://github.com/o/r.git",
            "https://user:secret@GitHub.com/o/r",
            "git@github.com:o/r.git",
            "ssh://git@github.com:22/o/r.git/",
        ] {
            assert_eq!(Place::of(url), place, "{url}");
        }
        for url in ["/srv/git/r.git", "../r", "file:///srv/r.git", "./a:b", "https://host"] {
            assert_eq!(Place::of(url), None, "{url}");
        }
        assert_eq!(encoded("a/b c"), "a%2Fb%20c");
    }
}
