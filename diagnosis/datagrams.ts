import type { Config } from '../config.ts';
import { openDatagrams } from '../media/datagrams/open-datagrams.ts';
import { type Finding, ok, warn } from './finding.ts';

const CHECK = 'media sockets';

/** Checks how media workers send and receive audio on this machine (RTP_IO). */
export async function checkDatagrams({ rtpIo }: Config): Promise<Finding> {
  const { datagrams, unavailable } = await openDatagrams(rtpIo);
  const { name } = datagrams;
  datagrams.close();
  const [missed] = unavailable;
  if (missed === undefined || process.platform !== 'linux') return ok(CHECK, DESCRIPTIONS[name] ?? name);
  return warn(
    CHECK,
    `${DESCRIPTIONS[name] ?? name}; ${missed.name} does not work: ${missed.reason}`,
    'Allow the io_uring system calls, in a container by its seccomp profile. Without them a core carries fewer calls.',
  );
}

const DESCRIPTIONS: Record<string, string> = {
  io_uring: 'io_uring, one system call for many packets',
  epoll: 'epoll, two system calls for each packet, without those of Node',
  dgram: 'dgram, one system call for each packet',
};
