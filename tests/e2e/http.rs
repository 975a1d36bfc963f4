//! As much of HTTP/1.1 as the client speaks: requests with a length or in chunks, answers whole or as a stream,
//! many on one connection. One thread a connection.

use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// More than any request the client makes; a length above it ends the connection.
const MOST: usize = 64 << 20;

/// A request as it came.
pub struct Incoming {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Incoming {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// The way back to the client for one request.
pub struct Outgoing<'a> {
    stream: &'a TcpStream,
}

impl Outgoing<'_> {
    /// A whole answer in JSON.
    pub fn json(&mut self, status: u16, body: &serde_json::Value) -> io::Result<()> {
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            reason(status),
            body.len()
        );
        self.stream.write_all(head.as_bytes())?;
        self.stream.write_all(body.as_bytes())
    }

    /// An answer without a body.
    pub fn empty(&mut self, status: u16) -> io::Result<()> {
        let head = format!("HTTP/1.1 {status} {}\r\ncontent-length: 0\r\n\r\n", reason(status));
        self.stream.write_all(head.as_bytes())
    }

    /// Begins a stream of server-sent events.
    pub fn begin_events(&mut self) -> io::Result<()> {
        self.stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )
    }

    /// One event of the stream, sent at once.
    pub fn event(&mut self, name: &str, data: &serde_json::Value) -> io::Result<()> {
        let text = format!("event: {name}\ndata: {data}\n\n");
        self.stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())?;
        self.stream.flush()
    }

    /// Ends the stream; the connection stays.
    pub fn end_events(&mut self) -> io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n")
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        529 => "Overloaded",
        _ => "Error",
    }
}

/// A server on a free port of the loopback, until it is dropped.
pub struct Server {
    addr: SocketAddr,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves each request with `answer`, which may be called from several threads at once. An error from it
    /// (the client has gone, or it wants the connection cut) closes that connection.
    pub fn start(answer: impl Fn(Incoming, &mut Outgoing) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port on the loopback");
        let addr = listener.local_addr().expect("its address");
        let stop = Arc::new(AtomicBool::new(false));
        let answer = Arc::new(answer);
        let stopped = Arc::clone(&stop);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (answer, stopped) = (Arc::clone(&answer), Arc::clone(&stopped));
                std::thread::spawn(move || serve(&stream, answer.as_ref(), &stopped));
            }
        });
        Self { addr, stop, accepting: Some(accepting) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection; the others end with their peers.
        drop(TcpStream::connect_timeout(&self.addr, Duration::from_secs(1)));
        if let Some(thread) = self.accepting.take() {
            drop(thread.join());
        }
    }
}

fn serve(stream: &TcpStream, answer: &dyn Fn(Incoming, &mut Outgoing) -> io::Result<()>, stop: &AtomicBool) {
    drop(stream.set_nodelay(true));
    let mut reader = BufReader::new(stream);
    while !stop.load(Ordering::SeqCst) {
        let Ok(Some(request)) = read_request(&mut reader) else { return };
        if answer(request, &mut Outgoing { stream }).is_err() {
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<Incoming>> {
    let Some(first) = read_line(reader)? else { return Ok(None) };
    let mut words = first.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = Vec::new();
    while let Some(line) = read_line(reader)? {
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    let mut request = Incoming { method, path, headers, body: Vec::new() };
    request.body = if request.header("transfer-encoding").is_some_and(|how| how.contains("chunked")) {
        read_chunks(reader)?
    } else {
        let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        read_exactly(reader, length)?
    };
    Ok(Some(request))
}

fn read_line(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<String>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
}

fn read_exactly(reader: &mut BufReader<&TcpStream>, length: usize) -> io::Result<Vec<u8>> {
    if length > MOST {
        return Err(io::Error::other("the body is too long"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

fn read_chunks(reader: &mut BufReader<&TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(reader)?.unwrap_or_default();
        let length = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)
            .map_err(|_| io::Error::other("a chunk without a length"))?;
        body.extend(read_exactly(reader, length)?);
        read_line(reader)?;
        if length == 0 {
            return Ok(body);
        }
    }
}
