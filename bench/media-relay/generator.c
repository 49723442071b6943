/*
 * The phones of a relay benchmark, in one thread. Every call is two sockets that each send 50 RTP packets a second, at
 * phases spread over the 20 ms. Prints the phones' ports. Then reads one line "warm_up_ms measure_ms" from stdin, and
 * one line "agent_port customer_port" per call: where its phones send to. Prints "start" and "stop" around the measured
 * time, then one line of JSON. Delay counts from before the send call to the kernel's receive timestamp. A packet that
 * does not return within half a second after the last is lost.
 *
 * "rough" simulates a bad network: 2 % of the packets are lost, 2 % reordered, and every phone stalls for 200 ms every
 * 10 s, then sends the backlog at once. Lines "phone port" on stdin then change a phone's target while it talks; port 0
 * silences it.
 *
 * "steered" reads no lines at the start: phones are silent until a line "phone port" sets a target, and talk until
 * stdin ends. "-1 1" begins a measured time, "-1 0" ends it, and "-2 0" prints its line of JSON.
 *
 * Usage: generator <calls> <payload file of 160-byte PCMU frames> [rough|steered]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FRAME_NS 20000000LL
#define PACKET 172
/* Follows the RTP header: when it was sent, and whether it belongs to the measured time. */
#define STAMP 12
#define BUCKETS 2000000
#define BATCH 32
#define STALL_FRAMES 10
#define STALL_EVERY_FRAMES 500
#define PER_MILLE_LOST 20
#define PER_MILLE_OVERTAKEN 20

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static uint32_t *histogram; /* microseconds */
static uint64_t received, sent, refused, skipped;
static int64_t slowest_ns;

static struct mmsghdr messages[BATCH];
static struct iovec vectors[BATCH];
static uint8_t packets[BATCH][2048];
static uint8_t controls[BATCH][64];

static void receive_from(int fd) {
  for (;;) {
    for (int i = 0; i < BATCH; i++) messages[i].msg_hdr.msg_controllen = sizeof controls[i];
    int count = recvmmsg(fd, messages, BATCH, MSG_DONTWAIT, NULL);
    if (count <= 0) return;
    for (int i = 0; i < count; i++) {
      int64_t stamp;
      if (messages[i].msg_len < PACKET) continue;
      memcpy(&stamp, packets[i] + STAMP, 8);
      if (!(stamp & 1)) continue;
      int64_t at = 0;
      for (struct cmsghdr *c = CMSG_FIRSTHDR(&messages[i].msg_hdr); c != NULL; c = CMSG_NXTHDR(&messages[i].msg_hdr, c))
        if (c->cmsg_type == SO_TIMESTAMPNS) {
          struct timespec t;
          memcpy(&t, CMSG_DATA(c), sizeof t);
          at = t.tv_sec * 1000000000LL + t.tv_nsec;
        }
      int64_t delay = at - stamp;
      int64_t us = delay / 1000;
      received++;
      if (delay > slowest_ns) slowest_ns = delay;
      histogram[us < 0 ? 0 : us >= BUCKETS ? BUCKETS - 1 : us]++;
    }
    if (count < BATCH) return;
  }
}

/* A phone's backlog on a bad network. */
struct backlog {
  uint8_t packets[STALL_FRAMES][PACKET];
  int count, stalled;
};

static int *sockets;
static struct sockaddr_in *targets;

static void emit(int phone, uint8_t *packet) {
  int64_t stamp;
  memcpy(&stamp, packet + STAMP, 8);
  stamp = (now_ns() & ~1LL) | (stamp & 1);
  memcpy(packet + STAMP, &stamp, 8);
  if (targets[phone].sin_port == 0) {
    skipped++;
    return;
  }
  if (sendto(sockets[phone], packet, PACKET, MSG_DONTWAIT, (struct sockaddr *)&targets[phone], sizeof targets[0]) < 0)
    refused++;
  if (stamp & 1) sent++;
}

static void flush(int phone, struct backlog *backlog) {
  for (int i = 0; i < backlog->count; i++) emit(phone, backlog->packets[i]);
  backlog->count = 0;
}

static void emit_roughly(int phone, uint32_t round, uint8_t *packet, struct backlog *backlog) {
  uint32_t dice = (phone + 1) * 2654435761u ^ (round + 1) * 2246822519u;
  dice = (dice ^ dice >> 15) * 2654435761u;
  dice ^= dice >> 13;
  if (dice % 1000 < PER_MILLE_LOST) {
    skipped++;
    return;
  }
  if ((round + phone * 37u) % STALL_EVERY_FRAMES == 0) backlog->stalled = STALL_FRAMES;
  int is_overtaken = dice / 1000 % 1000 < PER_MILLE_OVERTAKEN;
  if (backlog->count < STALL_FRAMES && (backlog->stalled > 0 || (is_overtaken && backlog->count == 0))) {
    memcpy(backlog->packets[backlog->count++], packet, PACKET);
    if (backlog->stalled > 0 && --backlog->stalled == 0) flush(phone, backlog);
    return;
  }
  emit(phone, packet);
  flush(phone, backlog);
}

static int is_measuring, is_over;
static int64_t latest_ns;
static double percentile_ms(double fraction);

static void report(void) {
  printf("{\"sent\":%llu,\"received\":%llu,\"refused\":%llu,\"skipped\":%llu,\"p50Ms\":%.3f,\"p99Ms\":%.3f,\"maxMs\":%.3f,\"generatorLateMs\":%.3f}\n",
         (unsigned long long)sent, (unsigned long long)received, (unsigned long long)refused, (unsigned long long)skipped, percentile_ms(0.5),
         percentile_ms(0.99), slowest_ns / 1e6, latest_ns / 1e6);
  fflush(stdout);
}

static void measure(int begins) {
  is_measuring = begins;
  if (!begins) return;
  memset(histogram, 0, BUCKETS * sizeof *histogram);
  received = sent = refused = skipped = slowest_ns = latest_ns = 0;
}

static void read_lines(int phones) {
  static char text[4096];
  static size_t length;
  ssize_t count = read(0, text + length, sizeof text - 1 - length);
  if (count == 0) is_over = 1;
  if (count <= 0) return;
  length += count;
  text[length] = 0;
  char *line = text, *end;
  while ((end = strchr(line, '\n')) != NULL) {
    int phone, port;
    if (sscanf(line, "%d %d", &phone, &port) == 2) {
      if (phone == -1) measure(port);
      else if (phone == -2) report();
      else if (phone >= 0 && phone < phones) targets[phone].sin_port = htons(port);
    }
    line = end + 1;
  }
  length -= line - text;
  memmove(text, line, length);
}

static double percentile_ms(double fraction) {
  uint64_t seen = 0;
  for (int us = 0; us < BUCKETS; us++) {
    seen += histogram[us];
    if (received > 0 && seen >= fraction * received) return us / 1000.0;
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 3 && argc != 4) return 2;
  int is_rough = argc == 4 && strcmp(argv[3], "rough") == 0;
  int is_steered = argc == 4 && strcmp(argv[3], "steered") == 0;
  int calls = atoi(argv[1]), phones = 2 * calls;
  struct rlimit files = {65536, 65536};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  histogram = calloc(BUCKETS, sizeof *histogram);
  sockets = calloc(phones, sizeof *sockets);
  targets = calloc(phones, sizeof *targets);
  struct backlog *backlogs = calloc(is_rough ? phones : 1, sizeof *backlogs);
  int64_t *due = calloc(phones, sizeof *due);
  uint8_t *speech = malloc(1 << 20);
  FILE *file = fopen(argv[2], "rb");
  if (file == NULL) return 2;
  int frames = fread(speech, 160, (1 << 20) / 160, file);
  fclose(file);
  if (frames < 1) return 2;
  int epoll = epoll_create1(0);
  for (int i = 0; i < phones; i++) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof any;
    int on = 1, size = 1 << 18;
    sockets[i] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    if (sockets[i] < 0 || bind(sockets[i], (struct sockaddr *)&any, sizeof any) != 0) {
      perror("a phone");
      return 1;
    }
    setsockopt(sockets[i], SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    getsockname(sockets[i], (struct sockaddr *)&any, &length);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = sockets[i]};
    epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[i], &event);
    printf("%d%c", ntohs(any.sin_port), i % 2 == 0 ? ' ' : '\n');
  }
  fflush(stdout);
  long warm_up_ms = 0, measure_ms = 0;
  if (!is_steered && scanf("%ld %ld", &warm_up_ms, &measure_ms) != 2) return 2;
  for (int i = 0; i < phones; i++) {
    int port = 0;
    if (!is_steered && scanf("%d", &port) != 1) return 2;
    targets[i] = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
  }
  if (is_rough || is_steered) fcntl(0, F_SETFL, O_NONBLOCK);
  for (int i = 0; i < BATCH; i++) {
    vectors[i] = (struct iovec){packets[i], sizeof packets[i]};
    messages[i].msg_hdr = (struct msghdr){.msg_iov = &vectors[i], .msg_iovlen = 1, .msg_control = controls[i]};
  }
  int64_t begin = now_ns() + 1000000, measure_from = begin + warm_up_ms * 1000000LL;
  int64_t measure_until = measure_from + measure_ms * 1000000LL, end = measure_until + 500000000LL;
  /* Spreads list neighbours and the two phones of a call apart in time. */
  for (int i = 0; i < phones; i++) due[i] = begin + FRAME_NS * ((i * 7919LL) % phones) / phones;
  /* Sorted by phase, so that the next one due is always the next in the list. */
  int *order = calloc(phones, sizeof *order);
  for (int i = 0; i < phones; i++) order[i] = -1;
  for (int i = 0; i < phones; i++) {
    int slot = (i * 7919LL) % phones;
    while (order[slot] != -1) slot = (slot + 1) % phones;
    order[slot] = i;
  }
  for (int slot = 0; slot < phones; slot++) due[order[slot]] = begin + FRAME_NS * slot / phones;
  struct epoll_event events[256];
  uint8_t packet[PACKET] = {0x80, 0};
  int next = 0, started = 0, stopped = 0;
  uint32_t round = 0;
  int64_t now = now_ns();
  while (is_steered ? !is_over : now < end) {
    if (is_steered) started = is_measuring;
    else if (!started && now >= measure_from) started = printf("start\n"), fflush(stdout);
    if (!is_steered && !stopped && now >= measure_until) stopped = printf("stop\n"), fflush(stdout);
    for (int burst = 0; burst < 64; burst++) {
      int phone = order[next];
      if (due[phone] > now || (!is_steered && due[phone] >= measure_until)) break;
      if (started && now - due[phone] > latest_ns) latest_ns = now - due[phone];
      uint16_t sequence = htons(round);
      uint32_t timestamp = htonl(round * 160), ssrc = htonl(0x10000 + phone);
      memcpy(packet + 2, &sequence, 2);
      memcpy(packet + 4, &timestamp, 4);
      memcpy(packet + 8, &ssrc, 4);
      memcpy(packet + 12, speech + 160 * ((round + phone) % frames), 160);
      int64_t at = now_ns();
      int64_t stamp = (is_steered ? is_measuring : at >= measure_from) ? at | 1 : at & ~1LL;
      memcpy(packet + STAMP, &stamp, 8);
      if (is_rough) emit_roughly(phone, round, packet, &backlogs[phone]);
      else emit(phone, packet);
      due[phone] += FRAME_NS;
      if (++next == phones) next = 0, round++;
      if ((burst & 7) == 7) now = now_ns();
    }
    if (is_rough || is_steered) read_lines(phones);
    int is_ahead = due[order[next]] > now;
    int count = epoll_wait(epoll, events, 256, (is_rough || is_steered) && is_ahead ? 1 : 0);
    for (int i = 0; i < count; i++) receive_from(events[i].data.fd);
    now = now_ns();
  }
  if (!is_steered) report();
  return 0;
}
