import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Config } from '../config.ts';
import { isOwnAddress } from '../runtime/network-address.ts';
import type { Sql } from '../storage/database.ts';
import { type Finding, fail, ok, reasonOf, warn } from './finding.ts';

/** Checks that carriers can reach our advertised addresses: SIP_HOST in Via and Contact, RTP_HOST in SDP. */
export async function checkAddresses(config: Config, sql: Sql | null): Promise<Finding[]> {
  const carriers = sql === null ? [] : await carrierHosts(sql);
  const outside = carriers.find((host) => !isLoopback(host)) ?? null;
  const findings = [await checkAddress('RTP_HOST', config.rtpHost, outside)];
  if (config.drachtioHost === null) findings.unshift(await checkAddress('SIP_HOST', config.sipHost, outside));
  return findings;
}

async function checkAddress(name: string, host: string, outsideCarrier: string | null): Promise<Finding> {
  const advice = `Set ${name} to the address at which carriers reach this machine.`;
  if (host === '0.0.0.0' || host === '::')
    return fail(name, `${host} is not an address that a carrier can reach.`, advice);
  if (isIP(host) === 0) {
    try {
      await lookup(host);
    } catch (error) {
      return fail(name, `${host} cannot be looked up: ${reasonOf(error)}`, advice);
    }
  }
  if (isLoopback(host)) {
    if (outsideCarrier === null) return ok(name, `${host}: carriers on this machine only`);
    return warn(name, `${host} reaches this machine only, but a trunk leads to ${outsideCarrier}.`, advice);
  }
  if (isOwnAddress(host)) return ok(name, `${host}, an address of this machine`);
  return ok(
    name,
    `${host} is advertised to carriers but is not an address of this machine, so a router must forward to it`,
  );
}

async function carrierHosts(sql: Sql): Promise<string[]> {
  const rows = await sql<{ sipUri: string }[]>`
    select distinct sip_uri from trunks where deleted_at is null and status = 'active' limit 1000`.catch(() => []);
  return rows.map(({ sipUri }) =>
    sipUri
      .replace(/^sip:/i, '')
      .replace(/:\d+$/, '')
      .replace(/^\[|\]$/g, ''),
  );
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || (ipaddr.isValid(host) && ipaddr.parse(host).range() === 'loopback');
}
