import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { selfSignedCertificate } from '../callbacks/certificate.ts';
import { freePorts } from '../free-ports.ts';
import { runPeer, untilListening } from './programs.ts';

export interface KamailioOptions {
  /** Account required for calls and registrations. */
  username: string;
  password: string;
  /** Next hop of a call, by called number. */
  routes: Readonly<Record<string, { host: string; port: number }>>;
  /** Calls to this number go to the contact that the account has registered. */
  registeredNumber: string;
}

export interface Kamailio {
  /** For UDP and TCP. */
  sipUri: string;
  tlsUri: string;
  /** Self-signed certificate of `tlsUri`, PEM. */
  caFile: string;
  /** Returns the log so far. */
  output: () => string;
  stop: () => Promise<void>;
}

const HOST = '127.0.0.1';

/** Starts kamailio as a record-routing carrier and registrar with digest authentication. */
export async function startKamailio(options: KamailioOptions): Promise<Kamailio> {
  const folder = await mkdtemp(join(tmpdir(), 'kamailio-'));
  const [port, tlsPort] = [await freePorts(2), await freePorts(2)];
  const { cert, key } = selfSignedCertificate({ ipv4: [HOST] });
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  await Promise.all([writeFile(files.cert, cert), writeFile(files.key, key)]);
  const config = join(folder, 'kamailio.cfg');
  await writeFile(config, configOf(options, { port, tlsPort, files }));
  // -DD: foreground; -E: log to standard error.
  const args = ['-DD', '-E', '-f', config, '-w', folder, '-Y', folder, '-P', join(folder, 'pid'), '-m', '32'];
  const peer = runPeer('kamailio', { cwd: folder, args });
  await untilListening(port, 'udp', peer);
  await untilListening(tlsPort, 'tcp', peer);
  return {
    sipUri: `sip:${HOST}:${port}`,
    tlsUri: `sip:${HOST}:${tlsPort}`,
    caFile: files.cert,
    output: peer.output,
    stop: async () => {
      peer.child.kill('SIGTERM');
      await peer.exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

interface Listening {
  port: number;
  tlsPort: number;
  files: { cert: string; key: string };
}

function configOf(
  { username, password, routes, registeredNumber }: KamailioOptions,
  { port, tlsPort, files }: Listening,
): string {
  const modules = ['tls', 'tm', 'sl', 'rr', 'pv', 'maxfwd', 'textops', 'siputils', 'auth', 'usrloc', 'registrar'];
  return `#!KAMAILIO
log_stderror=yes
children=1
tcp_children=2
auto_aliases=no
enable_tls=yes
tcp_accept_aliases=yes
listen=udp:${HOST}:${port}
listen=tcp:${HOST}:${port}
listen=tls:${HOST}:${tlsPort}
${modules.map((name) => `loadmodule "${name}.so"`).join('\n')}
modparam("tls", "certificate", "${files.cert}")
modparam("tls", "private_key", "${files.key}")
modparam("tls", "tls_method", "TLSv1.2+")
modparam("tls", "verify_certificate", 0)
modparam("usrloc", "db_mode", 0)
modparam("auth", "qop", "auth")
modparam("auth", "algorithm", "SHA-256")

request_route {
  if (!mf_process_maxfwd_header("10")) { sl_send_reply("483", "Too Many Hops"); exit; }
  if (is_method("CANCEL")) { if (t_check_trans()) { t_relay(); } exit; }
  if (has_totag()) {
    if (loose_route()) { t_relay(); exit; }
    if (is_method("ACK")) { if (t_check_trans()) { t_relay(); } exit; }
    sl_send_reply("481", "Call/Transaction Does Not Exist");
    exit;
  }
  t_check_trans();
  if (is_method("OPTIONS")) { sl_send_reply("200", "OK"); exit; }
  if (is_method("REGISTER")) {
    if (!pv_www_authenticate("kamailio", "${password}", "0") || $au != "${username}") {
      www_challenge("kamailio", "1");
      exit;
    }
    save("location");
    exit;
  }
  if (!is_method("INVITE")) { sl_send_reply("405", "Method Not Allowed"); exit; }
  record_route();
  if ($rU == "${registeredNumber}") {
    $rU = "${username}";
    if (!lookup("location")) { sl_send_reply("404", "Not Found"); exit; }
    $rU = "${registeredNumber}";
    t_relay();
    exit;
  }
  if (!pv_proxy_authenticate("kamailio", "${password}", "0") || $au != "${username}") {
    proxy_challenge("kamailio", "1");
    exit;
  }
  consume_credentials();
${Object.entries(routes)
  .map(([number, at]) => `  if ($rU == "${number}") { $du = "sip:${at.host}:${at.port}"; t_relay(); exit; }`)
  .join('\n')}
  sl_send_reply("404", "Not Found");
}
`;
}
