// All convolutions of many iterations of a Deep Thinking network on strings, in one launch.
//
// 128 rows of positions (four strings of 32) belong to a group of blocks, one for every 80 channels
// of the output. A group thinks about its strings from the first iteration to the last: its blocks
// exchange features through global memory and wait for each other only, at counters. A block
// keeps the rows of its strings in shared memory, where all three taps read them, and streams the
// kernels through a ring of stages, ahead of the convolution that needs them. Its two warp groups
// have half of the strings each, and half a convolution between them: one multiplies while the
// other waits for its neighbours.
//
// Kernels are laid out in stages of 80 output channels x 80 input channels of one tap, in the order
// [tile of outputs][chunk of inputs][tap][input / 8][output / 8][8 outputs][8 inputs].
//
// On the way back the taps of a kernel are taken in reverse. CHANNELS and BFLOAT are given to the
// compiler.

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr int WIDE = 80;                            // output channels of a block, inputs of a chunk
constexpr int GROUP = CHANNELS / WIDE;              // blocks of a group, and chunks
constexpr int STAGE = WIDE * WIDE * 2;              // bytes of a stage
constexpr int STAGES = 8;
constexpr int PITCH = CHANNELS * 2 + 16;            // bytes of a row in shared memory: no conflicts
constexpr int HALF = 128;                           // threads of a warp group
constexpr int PIECES = 64 * 10 / HALF;              // 16-byte pieces of a chunk a thread copies
constexpr long long LEAD = 6000;                    // clocks between the two warp groups

struct Program {
  u64 kernels[8];   // one a layer
  u64 inputs;       // of every layer and iteration
  u64 gradients;    // of every layer's and iteration's output
  u64 memory;       // what the first layer adds, or 0
  u64 end;          // where the last convolution writes
  u64 counters;     // two a group, zero at the start
  long long layer;  // numbers from one layer's to the next one's
  long long slot;   // from one iteration's to the next one's, first layer
  long long inner;  // the same, other layers
  int ring;         // the first layer has this many slots, less one, or all: -1
  int count;        // iterations
  int layers;
  int recall;       // 1 if the first layer is the recall layer
  int recall_relu;
  int backward;
  int rows;
  int strings;
  int length;       // of a string: a divisor of 64
};

__device__ __forceinline__ void wait_for(u32 barrier, u32 parity) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@p bra done;\nbra again;\ndone:\n}" ::"r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ void together(int half) {
  asm volatile("bar.sync %0, 128;" ::"r"(half + 1) : "memory");
}

__device__ __forceinline__ void four_by_eight(u32 (&a)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(address) : "memory");
}

#if BFLOAT
#define KIND "bf16.bf16"
#else
#define KIND "f16.f16"
#endif

// acc (64 x 80) = a (64 x 16, registers) * b (16 x 80, shared memory) + acc * more
__device__ __forceinline__ void multiply(float (&d)[40], const u32 (&a)[4], u64 b, int more) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %45, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n80k16.f32." KIND " "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, "
      "%38, %39}, {%40, %41, %42, %43}, %44, p, 1, 1, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),
        "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));
}

__device__ __forceinline__ void widen(u32 two, float& low, float& high) {
#if BFLOAT
  low = __uint_as_float(two << 16);
  high = __uint_as_float(two & 0xffff0000u);
#else
  asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %2;\ncvt.f32.f16 %0, l;\ncvt.f32.f16 %1, h;\n}"
      : "=f"(low), "=f"(high) : "r"(two));
#endif
}

__device__ __forceinline__ u32 narrow(float low, float high) {
  u32 two;
#if BFLOAT
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
#else
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
#endif
  return two;
}

// Eight numbers; where there is nothing to read, the same word four times.
__device__ __forceinline__ void fetch(u32 (&to)[4], u64 from, u32 offset, u32 otherwise) {
  to[0] = to[1] = to[2] = to[3] = otherwise;
  if (from)
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "l"(from + offset));
}

__device__ __forceinline__ void read(float (&to)[4], u32 address) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void write(u32 address, float first, float second) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(first), "f"(second) : "memory");
}

// What one convolution reads and writes; 0 where there is nothing to read.
struct Task { u64 in, added, sign, out; int layer, relu; };

__device__ __forceinline__ u64 input(const Program& p, int layer, int i) {
  long long at = layer ? layer * p.layer + i * p.inner : (i & p.ring) * p.slot;
  return p.inputs + at * 2;
}

__device__ __forceinline__ u64 gradient(const Program& p, int layer, int i) {
  return p.gradients + (layer * p.layer + i * p.slot) * 2;
}

__device__ Task task_of(const Program& p, int number) {
  Task t;
  int i = number / p.layers, l = number % p.layers, last = p.layers - 1;
  if (!p.backward) {
    t.layer = l;
    t.in = input(p, l, i);
    t.out = l < last ? input(p, l + 1, i) : i + 1 < p.count ? input(p, 0, i + 1) : p.end;
    bool second = l >= p.recall && (l - p.recall) % 2;
    t.added = l < p.recall ? p.memory : second ? input(p, l - 1, i) : 0;
    t.relu = l < p.recall ? p.recall_relu : 1;
    t.sign = 0;
    return t;
  }
  i = p.count - 1 - i, l = last - l;
  bool first = l >= p.recall && (l - p.recall) % 2 == 0;
  t.layer = l;
  t.relu = 0;
  t.in = gradient(p, l, i);
  t.out = l ? gradient(p, l - 1, i) : i ? gradient(p, last, i - 1) : p.end;
  t.added = first ? gradient(p, l + 1, i) : 0;
  // What a ReLU made lets gradients pass where it is positive.
  bool made = l ? !(l == p.recall && p.recall && !p.recall_relu) : i > 0;
  t.sign = made ? input(p, l, i) : 0;
  return t;
}

extern "C" __global__ void __launch_bounds__(2 * HALF + 32, 1) run(const __grid_constant__ Program p) {
  extern __shared__ __align__(128) unsigned char memory[];
  const u32 stages = (u32)__cvta_generic_to_shared(memory);
  const u32 held = stages + STAGES * STAGE;
  const int strings = 128 / p.length, period = p.length + 1;  // strings of a group; their rows
  const u32 full = held + (strings * period + 1) * PITCH, empty = full + 8 * STAGES;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int group = blockIdx.x / GROUP, tile = blockIdx.x % GROUP;
  const int total = p.count * p.layers;

  if (thread == 0) {
    for (int s = 0; s < STAGES; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full + 8 * s));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(empty + 8 * s));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  for (int at = thread; at < (strings + 1) * (PITCH / 16); at += blockDim.x) {
    u32 row = at / (PITCH / 16) * period;  // the rows between strings are zero and stay so
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};"
                 ::"r"(held + row * PITCH + at % (PITCH / 16) * 16), "r"(0) : "memory");
  }
  __syncthreads();

  if (warp == 2 * HALF / 32) {  // one thread keeps the ring of kernels full
    if (lane == 0) {
      u32 turn = 0;
      for (int number = 0; number < total; ++number) {
        int l = number % p.layers;
        u64 from = p.kernels[p.backward ? p.layers - 1 - l : l] + (u64)tile * 3 * GROUP * STAGE;
        for (int part = 0; part < 3 * GROUP; ++part, ++turn) {
          int which = p.backward ? part + 2 - part % 3 * 2 : part;
          u32 s = turn % STAGES, round = turn / STAGES;
          if (round) wait_for(empty + 8 * s, (round - 1) & 1);
          asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                       ::"r"(full + 8 * s), "r"(STAGE) : "memory");
          asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                       "[%0], [%1], %2, [%3];"
                       ::"r"(stages + s * STAGE), "l"(from + which * STAGE), "r"(STAGE),
                         "r"(full + 8 * s)
                       : "memory");
        }
      }
    }
    return;
  }

  // Where this thread's rows lie: for matrix loads, for copies, for results.
  const int half = thread / HALF;
  const int start = 1 + group * strings * period;
  const int mine = warp * 16 + lane % 16;
  const u32 load = held + (mine / p.length * period + mine % p.length) * PITCH + lane / 16 * 16;
  u32 from[PIECES], to[PIECES];
  for (int q = 0; q < PIECES; ++q) {
    int at = thread % HALF + q * HALF, row = half * 64 + at / 10, piece = at % 10;
    int place = row / p.length * period + row % p.length;
    from[q] = (start + place) * (CHANNELS * 2) + piece * 16;
    to[q] = held + (1 + place) * PITCH + piece * 16;
  }
  const int upper = warp * 16 + lane / 4, lower = upper + 8;
  const u32 at_upper = held + (1 + upper / p.length * period + upper % p.length) * PITCH + lane % 4 * 8;
  const u32 at_lower = held + (1 + lower / p.length * period + lower % p.length) * PITCH + lane % 4 * 8;
  // No swizzle: blocks of 8 x 8 numbers; the next 8 inputs lie a row of blocks on, the next 8
  // outputs a block on.
  const u64 shape = ((u64)(WIDE * 16 / 16) << 16) | ((u64)(128 / 16) << 32);
  const u64 counter = p.counters + (group * 2 + half) * 4;

  if (half)
    for (long long since = clock64(); clock64() - since < LEAD;) {
    }
  float sum[40];
  u32 turn = 0;
  for (int number = 0; number < total; ++number) {
    const Task task = task_of(p, number);
    if (number) {
      if (thread % HALF == 0) {
        u32 seen;
        do {
          asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
        } while (seen < (u32)(GROUP * number));
      }
      together(half);
    }
#pragma unroll
    for (int chunk = 0; chunk < GROUP; ++chunk) {
#pragma unroll
      for (int q = 0; q < PIECES; ++q)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     ::"r"(to[q] + chunk * WIDE * 2), "l"(task.in + from[q] + chunk * WIDE * 2)
                     : "memory");
      asm volatile("cp.async.commit_group;" ::: "memory");
    }
    // Asked for now, used after the products.
    u32 added[PIECES][4], sign[PIECES][4];
#pragma unroll
    for (int q = 0; q < PIECES; ++q) {
      fetch(added[q], task.added, from[q] + tile * WIDE * 2, 0);
      fetch(sign[q], task.sign, from[q] + tile * WIDE * 2, 0x3c003c00u);
    }
#pragma unroll
    for (int chunk = 0; chunk < GROUP; ++chunk) {
      if (chunk == 0) asm volatile("cp.async.wait_group %0;" ::"n"(GROUP - 1) : "memory");
      if (chunk == 1) asm volatile("cp.async.wait_group %0;" ::"n"(GROUP - 2) : "memory");
      if (chunk == 2) asm volatile("cp.async.wait_group %0;" ::"n"(GROUP > 2 ? GROUP - 3 : 0) : "memory");
      if (chunk == 3) asm volatile("cp.async.wait_group %0;" ::"n"(GROUP > 3 ? GROUP - 4 : 0) : "memory");
      if (chunk >= 4) asm volatile("cp.async.wait_group 0;" ::: "memory");
      together(half);
      u32 a[2][5][4];
#pragma unroll
      for (int k = 0; k < 5; ++k) four_by_eight(a[0][k], load + chunk * WIDE * 2 + k * 32);
#pragma unroll
      for (int tap = 0; tap < 3; ++tap, ++turn) {
        const u32 s = turn % STAGES;
        wait_for(full + 8 * s, turn / STAGES & 1);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < 5; ++k)
          multiply(sum, a[tap % 2][k], shape | ((stages + s * STAGE + k * 2 * WIDE * 16) >> 4),
                   chunk + tap + k);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (tap < 2)
#pragma unroll
          for (int k = 0; k < 5; ++k)
            four_by_eight(a[1 - tap % 2][k], load + (tap + 1) * PITCH + chunk * WIDE * 2 + k * 32);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (thread % HALF == 0)
          asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(empty + 8 * s) : "memory");
      }
    }
    // Sums go through the rows' own place, now free, so that memory is read and written in pieces.
    together(half);
#pragma unroll
    for (int j = 0; j < 10; ++j) {
      write(at_upper + 32 * j, sum[4 * j], sum[4 * j + 1]);
      write(at_lower + 32 * j, sum[4 * j + 2], sum[4 * j + 3]);
    }
    together(half);
#pragma unroll
    for (int q = 0; q < PIECES; ++q) {
      float total[2][4];
      u32 made[4];
      u32 there = to[q] + (thread % HALF + q * HALF) % 10 * 16;  // twice as wide here
      read(total[0], there);
      read(total[1], there + 16);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float low, high, x, y;
        widen(added[q][e], low, high);
        low += total[e / 2][e % 2 * 2];
        high += total[e / 2][e % 2 * 2 + 1];
        if (task.relu) low = low < 0.f ? 0.f : low, high = high < 0.f ? 0.f : high;  // NaN stays
        widen(sign[q][e], x, y);
        made[e] = narrow(x > 0.f ? low : 0.f, y > 0.f ? high : 0.f);
      }
      asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                   ::"l"(task.out + from[q] + tile * WIDE * 2), "r"(made[0]), "r"(made[1]),
                     "r"(made[2]), "r"(made[3]) : "memory");
    }
    // The rows that are no positions are zero.
    const int between = strings / 2, used = p.strings * period + 1;
    int extra = group == 0 && half == 0;
    int after = group + 1 == (int)gridDim.x / GROUP && half ? p.rows - used : 0;
    for (int at = thread % HALF; at < (between + extra + after) * 10; at += HALF) {
      int which = at / 10, row;
      if (which < between) row = start + (half * between + which) * period + p.length;
      else if (which < between + extra) row = 0;
      else row = used + which - between - extra;
      u64 there = task.out + (u64)row * CHANNELS * 2 + tile * WIDE * 2 + at % 10 * 16;
      asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(there), "r"(0) : "memory");
    }
    together(half);
    if (thread % HALF == 0 && number + 1 < total) {
      __threadfence();
      asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
    }
  }
}
