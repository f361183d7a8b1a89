//! A PostgreSQL server of a test's own: real, in a directory that goes away with it, on loopback. Debian's
//! `postgresql` has the programs; where they are missing the test fails and says what to install.
//!
//! A server is made once by `initdb` and copied from then on, under a lock: every test runs in a process of its own. The server
//! ends with the test's process, however that ends.

use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

/// How long a server may take to answer: far above any load, so that only a hang reaches it.
const START_LIMIT: Duration = Duration::from_secs(180);

/// Pause between two looks whether it answers.
const START_LOOK: Duration = Duration::from_millis(30);

/// Runs the server until it ends, or until this input does: then the test's process is gone, and the server is stopped at once.
const KEEPER: &str = "exec 3<&0; \"$@\" 3<&- & server=$!; \
                      (cat <&3 > /dev/null; kill -QUIT $server) 2> /dev/null & wait $server";

/// The user that runs servers for root: PostgreSQL refuses to be root.
const USER: &str = "postgres";

/// What every server runs with beside PostgreSQL's defaults: small, and without the chores of a long life.
const SETTINGS: &[&str] = &[
    "shared_buffers=32MB",
    "max_connections=200",
    "autovacuum=off",
    "max_wal_size=256MB",
    "wal_level=replica",
    "unix_socket_directories=",
    "log_min_messages=warning",
];

/// A running server.
pub struct Server {
    dir: TempDir,
    port: u16,
    keeper: Option<Child>,
    settings: Vec<String>,
    /// What it needs beside its data, kept as long as it runs.
    files: Option<TempDir>,
}

impl Server {
    /// Starts a server with a database named `rekindle`. Panics with what is missing.
    pub fn start() -> Server {
        Server::start_with(&[])
    }

    /// The same with settings of its own, as `name=value`.
    pub fn start_with(settings: &[&str]) -> Server {
        let dir = place();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
        copy_template(&dir.path().join("data"));
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut server = Server { dir, port: free_port(), keeper: None, settings, files: None };
        server.up();
        server
    }

    /// A server that takes no connection without TLS. It gets copies of the two files, in PEM.
    pub fn start_with_tls(certificate: &str, key: &str) -> Server {
        let files = place();
        fs::set_permissions(files.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
        let put = |name: &str, from: &str| {
            let path = files.path().join(name);
            fs::copy(from, &path).expect("copied");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("permissions");
            if is_root() {
                run(Command::new("chown").arg(USER).arg(&path));
            }
            path.display().to_string()
        };
        let access = files.path().join("access");
        fs::write(&access, "hostssl all all 127.0.0.1/32 trust\n").expect("written");
        fs::set_permissions(&access, fs::Permissions::from_mode(0o644)).expect("permissions");
        let settings = [
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", put("certificate", certificate)),
            format!("ssl_key_file={}", put("key", key)),
            format!("hba_file={}", access.display()),
        ];
        let mut server = Server::start_with(&settings.each_ref().map(String::as_str));
        server.files = Some(files);
        server
    }

    /// The address of its database, over loopback.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// The same through another port, such as a proxy's.
    pub fn url_at(&self, port: u16) -> String {
        format!("postgres://{USER}@127.0.0.1:{port}/rekindle")
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs SQL as the database's owner and returns what it prints, without decoration.
    pub fn sql(&self, sql: &str) -> String {
        let output = Command::new(program("psql"))
            .args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, &self.url()])
            .output()
            .expect("psql runs");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// The process id of its first process.
    pub fn pid(&self) -> i32 {
        let path = self.dir.path().join("data/postmaster.pid");
        let text = fs::read_to_string(&path).expect("a running server has a pid file");
        text.lines().next().and_then(|line| line.trim().parse().ok()).expect("a pid")
    }

    /// Kills the server as a power cut of its machine would: every process at once, without a word to anybody.
    pub fn kill(&mut self) {
        let pid = self.pid();
        let children = Command::new("pgrep").args(["-P", &pid.to_string()]).output().expect("pgrep runs");
        let children = String::from_utf8_lossy(&children.stdout).into_owned();
        let mut kill = Command::new("kill");
        kill.args(["-KILL", &pid.to_string()]).args(children.split_whitespace());
        // A child may have ended meanwhile; that is no failure of the kill.
        kill.stderr(Stdio::null()).status().expect("kill runs");
        self.down();
    }

    /// Starts it again, with the same directory and port. Processes of a killed server may hold its memory for a moment longer:
    /// a start that they refuse is made again.
    pub fn up(&mut self) {
        let mut keeper = self.spawn();
        let looks = START_LIMIT.as_millis() / START_LOOK.as_millis();
        for _ in 0..looks {
            let ready = Command::new(program("pg_isready"))
                .args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()])
                .status()
                .expect("pg_isready runs");
            if ready.success() {
                self.keeper = Some(keeper);
                return;
            }
            if keeper.try_wait().expect("the keeper is looked at").is_some() {
                keeper = self.spawn();
            }
            std::thread::park_timeout(START_LOOK);
        }
        panic!("the server does not answer: {}", self.log());
    }

    fn spawn(&self) -> Child {
        let server = as_user("env");
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "sh"]).arg(server.get_program()).args(server.get_args());
        command.arg(program("postgres")).arg("-D").arg(self.dir.path().join("data"));
        command.args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        for setting in SETTINGS.iter().map(ToString::to_string).chain(self.settings.iter().cloned()) {
            command.args(["-c", &setting]);
        }
        let log = File::options().create(true).append(true).open(self.dir.path().join("log")).expect("a log");
        command.stdin(Stdio::piped()).stdout(log.try_clone().expect("a log")).stderr(log);
        command.spawn().expect("the server's keeper starts")
    }

    /// What the server has written to its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn down(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            drop(keeper.stdin.take());
            keeper.wait().expect("the keeper ends");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.down();
    }
}

/// A directory that the server's user reaches, in memory where there is one: a test syncs thousands of times.
fn place() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary directory")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
    listener.local_addr().expect("its address").port()
}

/// A program of the server's package, which Debian keeps off the path.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin").join(name)).collect();
    found.retain(|path| path.is_file());
    found.sort();
    let on_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.is_file())
    };
    found.pop().or_else(on_path).unwrap_or_else(|| panic!("{name} is missing: apt-get install -y postgresql"))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A command as a user that may run servers.
fn as_user(name: &str) -> Command {
    if !is_root() {
        return Command::new(name);
    }
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups", "--reset-env", "--", name]);
    command
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Puts the data of a fresh server with a database `rekindle` at a path.
fn copy_template(to: &Path) {
    let template = template().unwrap_or_else(|error| panic!("no template of a server: {error}"));
    run(Command::new("cp").arg("-a").arg(template).arg(to));
}

/// Makes the template unless it is there. It lies in the temporary directory, because the server's user must reach it.
fn template() -> io::Result<PathBuf> {
    let version = program("postgres").to_string_lossy().replace('/', "-");
    let base = std::env::temp_dir().join(format!("rekindle-testkit{version}-{}", rustix::process::geteuid().as_raw()));
    fs::create_dir_all(&base)?;
    fs::set_permissions(&base, fs::Permissions::from_mode(0o777))?;
    let lock = File::options().create(true).append(true).open(base.join("lock"))?;
    lock.lock()?;
    let done = base.join("done");
    if done.is_dir() {
        return Ok(done);
    }
    let making = base.join("making");
    if making.exists() {
        fs::remove_dir_all(&making)?;
    }
    let mut initdb = as_user("env");
    initdb.arg(program("initdb")).arg("-D").arg(&making);
    initdb.args(["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]);
    run(&mut initdb);
    let mut single = as_user("env");
    single.arg(program("postgres")).args(["--single", "-D"]).arg(&making).arg("postgres");
    let mut child = single.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    if let Some(input) = &mut child.stdin {
        io::Write::write_all(input, b"CREATE DATABASE rekindle\n")?;
    }
    drop(child.stdin.take());
    assert!(child.wait()?.success(), "the template's database cannot be made");
    fs::rename(&making, &done)?;
    Ok(done)
}
