/* Writes the files of tests/fixtures/matlab by libmatio 1.5:  cc matio_golden.c -lmatio && ./a.out
 * K = [4 0; -1.5 2; 0.25 -3e5] as doubles, and the like of other classes. */
#include <matio.h>
#include <stdio.h>
#include <string.h>

static double K[6] = {4, -1.5, 0.25, 0, 2, -3e5};

static void put(mat_t *file, matvar_t *variable, enum matio_compression packing) {
  Mat_VarWrite(file, variable, packing);
  Mat_VarFree(variable);
}

static matvar_t *dense(const char *name, enum matio_classes kind, enum matio_types type, void *data,
                       size_t rows, size_t columns, int flags) {
  size_t shape[2] = {rows, columns};
  return Mat_VarCreate(name, kind, type, 2, shape, data, flags);
}

static void write_file(const char *path, enum mat_ft level, enum matio_compression packing) {
  mat_t *file = Mat_CreateVer(path, NULL, level);
  float F[6];
  int I[6] = {4, -1, 0, 0, 2, -3};
  unsigned char L[6] = {1, 0, 1, 0, 0, 1};
  size_t one[2] = {1, 1}, shape[2] = {3, 2}, cube[3] = {1, 2, 3};
  const char *fields[1] = {"a"};
  for (int i = 0; i < 6; i++) F[i] = (float)K[i];
  put(file, dense("K", MAT_C_DOUBLE, MAT_T_DOUBLE, K, 3, 2, 0), packing);
  put(file, dense("F", MAT_C_SINGLE, MAT_T_SINGLE, F, 3, 2, 0), packing);
  put(file, dense("I", MAT_C_INT32, MAT_T_INT32, I, 3, 2, 0), packing);
  put(file, dense("L", MAT_C_UINT8, MAT_T_UINT8, L, 3, 2, MAT_F_LOGICAL), packing);
  mat_uint32_t rows[5] = {0, 1, 2, 1, 2}, begins[3] = {0, 3, 5};
  double values[5] = {4, -1.5, 0.25, 2, -3e5};
  mat_sparse_t sparse;
  memset(&sparse, 0, sizeof sparse);
  sparse.nzmax = sparse.nir = sparse.ndata = 5;
  sparse.njc = 3;
  sparse.ir = rows;
  sparse.jc = begins;
  sparse.data = values;
  put(file, dense("S", MAT_C_SPARSE, MAT_T_DOUBLE, &sparse, 3, 2, MAT_F_DONT_COPY_DATA), packing);
  mat_complex_split_t both = {K, K};
  put(file, dense("C", MAT_C_DOUBLE, MAT_T_DOUBLE, &both, 3, 2, MAT_F_COMPLEX), packing);
  put(file, dense("T", MAT_C_CHAR, MAT_T_UINT8, "text", 1, 4, 0), packing);
  matvar_t *cell = Mat_VarCreate("Z", MAT_C_CELL, MAT_T_CELL, 2, one, NULL, 0);
  Mat_VarSetCell(cell, 0, dense(NULL, MAT_C_DOUBLE, MAT_T_DOUBLE, K, 3, 2, 0));
  put(file, cell, packing);
  matvar_t *record = Mat_VarCreateStruct("R", 2, one, fields, 1);
  Mat_VarSetStructFieldByName(record, "a", 0,
                              Mat_VarCreate(NULL, MAT_C_DOUBLE, MAT_T_DOUBLE, 2, shape, K, 0));
  put(file, record, packing);
  put(file, Mat_VarCreate("D", MAT_C_DOUBLE, MAT_T_DOUBLE, 3, cube, K, 0), packing);
  put(file, dense("E", MAT_C_DOUBLE, MAT_T_DOUBLE, K, 0, 2, 0), packing);
  Mat_Close(file);
}

int main(void) {
  write_file("matio_5_plain.mat", MAT_FT_MAT5, MAT_COMPRESSION_NONE);
  write_file("matio_5_packed.mat", MAT_FT_MAT5, MAT_COMPRESSION_ZLIB);
  write_file("matio_73_plain.mat", MAT_FT_MAT73, MAT_COMPRESSION_NONE);
  write_file("matio_73_packed.mat", MAT_FT_MAT73, MAT_COMPRESSION_ZLIB);
  return 0;
}
