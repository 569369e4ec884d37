# To be sourced: whether there is MPI, and which library programs are built with.
if command -v mpirun >/dev/null && command -v mpicc >/dev/null; then
  has_mpi=1
  case $(mpirun --version 2>&1) in
    *"Open MPI"*) mpi_package=ompi ;;
    *) mpi_package=mpich ;;
  esac
  # That of this launcher, if pkg-config knows more than one.
  if [ -z "${MPI_PKG_CONFIG:-}" ] && pkg-config --exists "$mpi_package" 2>/dev/null; then
    export MPI_PKG_CONFIG=$mpi_package
  fi
else
  has_mpi=
fi
