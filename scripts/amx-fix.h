/* GCC 12's _tile_loadconfig names only 8 of the 64 bytes it reads as an operand, so the stores to the others may be
   dropped and the instruction faults. Force-included when llama.cpp is compiled by such a compiler for a CPU with AMX. */
#if defined(__AMX_TILE__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define _tile_loadconfig(config) \
  __asm__ volatile("ldtilecfg\t%X0" ::"m"(*(const char(*)[64])(config)) : "memory")
#define _tile_storeconfig(config) \
  __asm__ volatile("sttilecfg\t%X0" : "=m"(*(char(*)[64])(config))::"memory")
#endif
