//! temp stand in for redaction
use std::borrow::Cow;
/// temp
#[derive(Debug, Clone, Default)]
pub struct Redactor;
impl Redactor {
    /// temp
    pub fn from_environment(_: impl IntoIterator<Item = (String, String)>) -> Self {
        Self
    }
    /// temp
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }
}
