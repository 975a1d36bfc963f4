//! Credentials, masked by a list of rules. A rule names what its tokens look like: a prefix that the issuer
//! put there so that they can be found, or the word before it. What looks like nothing is not found.

use regex::{Captures, Regex};

use std::borrow::Cow;

/// What stands where a credential stood, with the rule's name.
const MASK: &str = "[masked:";

/// Name and pattern. Where a pattern has a group `s`, `s2` or `s3`, only that is masked. What opens with
/// a sign of its own needs no edge before it: results often hold JSON in JSON, where `\n` stands before a key.
pub const RULES: [(&str, &str); 30] = [
    (
        "private-key",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    ("anthropic", r"sk-ant-[A-Za-z0-9_-]{12,}"),
    ("openai", r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}"),
    ("aws-key-id", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    ("github", r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})"),
    ("gitlab", r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-[A-Za-z0-9_.-]{18,}"),
    ("slack", r"xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}"),
    ("slack-webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<s>[A-Za-z0-9/_-]{20,})"),
    ("google-key", r"AIza[A-Za-z0-9_-]{35}"),
    ("google-oauth", r"ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|1//0[A-Za-z0-9_-]{30,}"),
    ("stripe", r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{16,}"),
    ("npm", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi", r"pypi-[A-Za-z0-9_-]{40,}"),
    ("crates-io", r"cio[A-Za-z0-9]{32}\b"),
    ("hugging-face", r"hf_[A-Za-z0-9]{20,}"),
    ("sendgrid", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("mailgun-twilio", r"(?:key-[0-9a-f]{32}|SK[0-9a-f]{32})\b"),
    ("telegram", r"[0-9]{8,10}:[A-Za-z0-9_-]{35}\b"),
    (
        "discord",
        r"[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}|discord(?:app)?\.com/api/webhooks/(?P<s>[0-9]+/[A-Za-z0-9_-]{30,})",
    ),
    (
        "cloud",
        r"do[opr]_v1_[0-9a-f]{60,}|dapi[0-9a-f]{32}\b|hvs\.[A-Za-z0-9_-]{20,}|dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}",
    ),
    (
        "product",
        r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}|ntn_[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{40,}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|sq0(?:atp|csp)-[A-Za-z0-9_-]{20,}|glsa_[A-Za-z0-9_]{30,}|xai-[A-Za-z0-9]{40,}|gsk_[A-Za-z0-9]{30,}|tvly-[A-Za-z0-9_-]{20,}|nvapi-[A-Za-z0-9_-]{40,}|sntrys_[A-Za-z0-9+/=_]{40,}|pat[A-Za-z0-9]{14}\.[0-9a-f]{60,}",
    ),
    ("age", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    ("jwt", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    (
        "azure",
        r"(?i)(?:AccountKey|SharedAccessKey)=(?P<s>[A-Za-z0-9+/=]{20,})|[?&]sig=(?P<s2>[A-Za-z0-9%+/=]{20,})",
    ),
    (
        "authorization",
        r"(?i)(?:Authorization|Proxy-Authorization|X-Api-Key|Api-Key|X-Auth-Token|Private-Token)\b[\x22']?\s*[:=]\s*[\x22']?(?:(?:Bearer|Basic|Token|Digest)\s+)?(?P<s>[A-Za-z0-9+/=_.~-]{8,})",
    ),
    ("bearer", r"(?i)Bearer\s+(?P<s>[A-Za-z0-9+/=_.~-]{16,})"),
    ("cookie", r"(?i)(?:Set-)?Cookie:\s*(?P<s>[^\r\n\x22']{8,})"),
    ("url-password", r"://[^\s/:@\x22'<>]{0,80}:(?P<s>[^\s/@\x22'<>]{1,200})@"),
    (
        "assigned",
        r"(?i)(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|client[_-]?secret|credential|auth[_-]?key|encryption[_-]?key|signing[_-]?key)[A-Za-z0-9_-]{0,30}\\*[\x22']?\s{0,3}(?:=>|:=|==|[:=])\s{0,3}\\*(?:\x22(?P<s>[^\x22\r\n]{4,400})\x22|'(?P<s2>[^'\r\n]{4,400})'|[\x22'`]?(?P<s3>[^\s\x22'`,;<>{}()\[\]]{8,400}))",
    ),
    (
        "netrc",
        r"(?i)\blogin\s+\S+\s+password\s+(?P<s>\S{4,})|_(?:auth|authToken|password)\s*=\s*(?P<s2>[^\s\x22']{6,})",
    ),
];

/// Masks credentials and counts them, or leaves all as it is.
#[derive(Debug, Default)]
pub struct Redactor {
    rules: Vec<(&'static str, Regex)>,
    /// How many were masked, in all files together.
    pub masked: u64,
}

impl Redactor {
    /// One that masks by [`RULES`].
    pub fn new() -> Result<Self, regex::Error> {
        // An edge by Unicode's rules would take the engine's slowest way.
        let edge = |pattern: &str| Regex::new(&pattern.replace(r"\b", r"(?-u:\b)"));
        let rules = RULES.iter().map(|(name, pattern)| Ok((*name, edge(pattern)?)));
        Ok(Self { rules: rules.collect::<Result<_, regex::Error>>()?, masked: 0 })
    }

    /// Whether anything is masked at all.
    pub fn is_on(&self) -> bool {
        !self.rules.is_empty()
    }

    /// The text without credentials.
    pub fn apply(&mut self, text: String) -> String {
        let mut text = text;
        for (name, rule) in &self.rules {
            let mut masked = 0;
            let replaced = rule.replace_all(&text, |found: &Captures| {
                let whole = &found[0];
                let secret = found.name("s").or_else(|| found.name("s2")).or_else(|| found.name("s3"));
                let range = secret.map_or(0..whole.len(), |secret| {
                    let start = found.get(0).map_or(0, |whole| whole.start());
                    secret.start() - start..secret.end() - start
                });
                if whole[range.clone()].starts_with(MASK) {
                    return whole.to_owned();
                }
                masked += 1;
                format!("{}{MASK}{name}]{}", &whole[..range.start], &whole[range.end..])
            });
            if let Cow::Owned(replaced) = replaced {
                text = replaced;
            }
            self.masked += masked;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn masks(text: &str, secret: &str) {
        let mut redactor = Redactor::new().unwrap();
        let out = redactor.apply(text.to_owned());
        assert!(!out.contains(secret), "{out}");
        assert!(redactor.masked >= 1);
        assert_eq!(Redactor::new().unwrap().apply(out.clone()), out, "a mask is not masked again");
    }

    #[test]
    fn credentials_are_masked_wherever_they_stand() {
        let forty = "0123456789abcdefghijABCDEFGHIJ0123456789";
        masks(&format!("key sk-ant-api03-{forty}"), forty);
        masks(&format!("export AWS_SECRET_ACCESS_KEY={forty}"), forty);
        masks(&format!("\"api_key\": \"{forty}\""), forty);
        masks(r#"{\"a\": \"{\\\"db_password\\\": \\\"correct horse\\\"}\"}"#, "correct");
        masks("postgres://me:hunter2!@db/x", "hunter2!");
        masks("DB_PASSWORD='correct horse'", "correct");
        masks(&format!("curl -H 'Authorization: Bearer {forty}'"), forty);
        masks("-----BEGIN RSA PRIVATE KEY-----\nMIIabc\nMIIdef\n-----END RSA PRIVATE KEY-----", "MIIdef");
        masks(&format!(r"\\n{}_{forty}\\n", "ghp").replace(r"\\", r"\"), forty);
        masks("-----BEGIN PRIVATE KEY-----\nMIIabc cut here", "MIIabc");
    }

    #[test]
    fn plain_words_stay() {
        let mut redactor = Redactor::new().unwrap();
        for text in [
            "the token count is 5; tokens: 1200",
            "fn token(&self) -> Token { self.token }",
            "see https://example.org/a/b?c=d and skip the password prompt",
            "risk-based-approach-to-something-long is fine",
        ] {
            assert_eq!(redactor.apply(text.to_owned()), text);
        }
        assert!(!Redactor::default().is_on());
    }
}
