import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Config } from '../../../config.ts';
import { type Finding, fail, ok, reasonOf, warn } from '../../../diagnosis/finding.ts';
import { isOwnAddress } from '../../../runtime/network-address.ts';
import type { RunningServer } from './server.ts';

/** Checks that each port is free or used by the running Tandem. Skips the ports of a drachtio server. */
export async function checkPorts(config: Config, server: RunningServer): Promise<Finding[]> {
  const findings = [await checkHttpPort(config, server)];
  if (config.drachtioHost === null) findings.push(await checkSipPorts(config, server));
  findings.push(await checkRtpPorts(config, server));
  return findings;
}

async function checkHttpPort({ host, port }: Config, server: RunningServer): Promise<Finding> {
  const check = 'HTTP port';
  if (port === 0) return ok(check, 'any that is free');
  if (server.kind === 'tandem') return ok(check, `${port} is held by the running server`);
  const advice = 'Set PORT to a free one, and HOST to an address of this machine.';
  if (server.kind === 'stranger') return fail(check, `Another program answers on ${port}.`, advice);
  const trouble = await tryTcp(host, port);
  return trouble === null ? ok(check, `${port} is free`) : fail(check, `${port} cannot be opened: ${trouble}`, advice);
}

async function checkSipPorts(config: Config, server: RunningServer): Promise<Finding> {
  const { sipPort, sipHost, sipTransports } = config;
  const check = 'SIP port';
  if (sipPort === 0) return ok(check, `any that is free, ${sipTransports.join(' and ')}`);
  if (server.kind === 'tandem') return ok(check, `${sipPort} is the running server's`);
  if (sipTransports.includes('udp') && sipPort >= config.rtpPortMin && sipPort <= config.rtpPortMax) {
    return fail(check, `${sipPort} lies between RTP_PORT_MIN and RTP_PORT_MAX.`, 'Set SIP_PORT to one outside.');
  }
  const host = isOwnAddress(sipHost) ? sipHost : '0.0.0.0';
  for (const transport of sipTransports) {
    const trouble = await (transport === 'udp' ? tryUdp(host, sipPort) : tryTcp(host, sipPort));
    if (trouble !== null) {
      return fail(check, `${sipPort}/${transport} cannot be opened: ${trouble}`, 'Set SIP_PORT to a free one.');
    }
  }
  if (config.sipTlsCert !== null && config.sipTlsPort !== 0) {
    const trouble = await tryTcp(host, config.sipTlsPort);
    const advice = 'Set SIP_TLS_PORT to a free one.';
    if (trouble !== null) return fail(check, `${config.sipTlsPort}/tls cannot be opened: ${trouble}`, advice);
  }
  return ok(check, `${sipPort} is free, ${sipTransports.join(' and ')}`);
}

const RTP_SAMPLES = 16;

/** Samples the range; checking all of it would take one socket per port. */
async function checkRtpPorts(config: Config, server: RunningServer): Promise<Finding> {
  const { rtpPortMin: min, rtpPortMax: max, rtpHost } = config;
  const check = 'RTP ports';
  const any = rtpHost.includes(':') ? '::' : '0.0.0.0';
  const host = isOwnAddress(rtpHost) ? rtpHost : any;
  const ports = sample(min, max);
  const troubles = await Promise.all(ports.map((port) => tryUdp(host, port)));
  const taken = ports.filter((_, index) => troubles[index] !== null);
  const calls = Math.floor((max - min + 1) / 4);
  const range = `${min} to ${max}, for ${calls} calls`;
  const advice = 'Set RTP_PORT_MIN and RTP_PORT_MAX to a range that nothing else uses.';
  if (taken.length === ports.length && server.kind !== 'tandem') {
    return fail(
      check,
      `None of ${ports.length} ports tried from ${min} to ${max} can be opened: ${troubles[0]}`,
      advice,
    );
  }
  if (taken.length > 0 && server.kind !== 'tandem') {
    return warn(check, `Ports ${taken.join(', ')} of ${range} cannot be opened; calls that use them fail.`, advice);
  }
  const [firstEphemeral, lastEphemeral] = await ephemeralPorts();
  if (min <= lastEphemeral && max >= firstEphemeral) {
    const message = `${range}, overlaps the ports ${firstEphemeral} to ${lastEphemeral} that the system gives to any program.`;
    return warn(check, message, advice);
  }
  return ok(check, `${range}; ${ports.length} tried`);
}

function sample(min: number, max: number): number[] {
  const count = Math.min(RTP_SAMPLES, max - min + 1);
  return Array.from({ length: count }, (_, index) => min + Math.floor((index * (max - min)) / Math.max(1, count - 1)));
}

/** Linux assigns these to sockets without a fixed port. */
async function ephemeralPorts(): Promise<[number, number]> {
  const text = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(() => '');
  const [first, last] = text.trim().split(/\s+/).map(Number);
  return first && last ? [first, last] : [65_536, 65_536];
}

/** Returns the error code; null if the port is free. */
async function tryTcp(host: string, port: number): Promise<string | null> {
  const server = createServer();
  try {
    server.listen({ host, port, exclusive: true });
    await once(server, 'listening');
    return null;
  } catch (error) {
    return reasonOf(error);
  } finally {
    server.close();
  }
}

/** Returns the error code; null if the port is free. */
async function tryUdp(host: string, port: number): Promise<string | null> {
  const socket = createSocket({ type: host.includes(':') ? 'udp6' : 'udp4' });
  try {
    socket.bind({ address: host, port, exclusive: true });
    await once(socket, 'listening');
    return null;
  } catch (error) {
    return reasonOf(error);
  } finally {
    socket.close();
  }
}
