# What the CUDA plug-in is built from; no nvcc and no GPU are needed. Comes after find_package(LibTorch). Sets Cuda_FOUND;
# where something is missing, one line says what, and the plug-in is left out.
#
#   Cuda::torch   LibTorch's CUDA libraries and the CUDA runtime, with the headers of CUDA and NCCL
#
# Looked for in the toolkit (CUDAToolkit_ROOT, CUDA_HOME, /usr/local/cuda, beside nvcc) and among the packages that pip
# puts beside torch. These come first for NCCL, whose header must be of the version that LibTorch was built with, and
# last for CUDA, where they are often incomplete.
set(_toolkit ${CUDAToolkit_ROOT} $ENV{CUDAToolkit_ROOT} $ENV{CUDA_HOME} /usr/local/cuda)
set(_packages ${LibTorch_LIBRARY_DIR}/../../nvidia)

set(_required Cuda_TORCH_LIBRARY Cuda_C10_LIBRARY Cuda_RUNTIME_LIBRARY Cuda_NCCL_INCLUDE_DIR)
find_library(Cuda_TORCH_LIBRARY torch_cuda PATHS ${LibTorch_LIBRARY_DIR} NO_DEFAULT_PATH)
find_library(Cuda_C10_LIBRARY c10_cuda PATHS ${LibTorch_LIBRARY_DIR} NO_DEFAULT_PATH)
find_library(Cuda_RUNTIME_LIBRARY NAMES libcudart.so.13 cudart HINTS ${_packages}/cu13/lib ${_toolkit}
  PATH_SUFFIXES lib64 lib)
find_path(Cuda_NCCL_INCLUDE_DIR nccl.h HINTS ${_packages}/nccl ${_packages}/cu13 ${_toolkit} PATH_SUFFIXES include)
set(_includes ${Cuda_NCCL_INCLUDE_DIR})
foreach(_header crt/host_defines.h cuda_runtime_api.h cublas_v2.h cusolverDn.h cusparse.h)
  string(MAKE_C_IDENTIFIER ${_header} _name)
  find_path(Cuda_${_name} ${_header} HINTS ${_toolkit} ${_packages}/cu13 PATH_SUFFIXES include)
  mark_as_advanced(Cuda_${_name})
  list(APPEND _required Cuda_${_name})
  list(APPEND _includes ${Cuda_${_name}})
endforeach()
list(REMOVE_DUPLICATES _includes)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Cuda REQUIRED_VARS ${_required} FAIL_MESSAGE "The CUDA plug-in is left out")

if(Cuda_FOUND AND NOT TARGET Cuda::torch)
  add_library(Cuda::torch INTERFACE IMPORTED)
  target_include_directories(Cuda::torch SYSTEM INTERFACE ${_includes})
  target_compile_definitions(Cuda::torch INTERFACE USE_C10D_NCCL)
  target_link_libraries(Cuda::torch INTERFACE
    ${Cuda_TORCH_LIBRARY} ${Cuda_C10_LIBRARY} LibTorch::cpu ${Cuda_RUNTIME_LIBRARY})
endif()
